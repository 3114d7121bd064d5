"""``torch.compile``: Inductor with constant weights, autotuned templates, and its C++ wrapper."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from loopwright.comparing.case import Case, as_arrays
from loopwright.comparing.engines.eager import formatted, takes_an_image
from loopwright.comparing.engines.engine import Prepare, Prepared

SETTINGS: dict[str, dict[str, bool]] = {
    "freezing": {"freezing": True},
    "max_autotune": {"freezing": True, "max_autotune": True},
    "max_autotune, cpp_wrapper": {"freezing": True, "max_autotune": True, "cpp_wrapper": True},
}
"""All with ``freezing``, which makes weights constants."""


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    torch.set_num_threads(threads)
    for name, options in SETTINGS.items():
        yield name, partial(_prepared, case, options, torch.contiguous_format)
    if takes_an_image(case):
        options = SETTINGS["max_autotune"]
        yield "max_autotune, channels_last", partial(_prepared, case, options, torch.channels_last)


def _prepared(case: Case, options: dict[str, bool], memory_format: torch.memory_format) -> Prepared:
    torch._dynamo.reset()
    module = case.torch_module().to(memory_format=memory_format)
    inputs, named = formatted(case.torch_inputs(), memory_format)
    compiled = torch.compile(module)

    def call() -> Any:
        with torch.no_grad():
            return compiled(*inputs, **named)

    # As ``options`` of torch.compile, freezing has no effect: the capture of the graph reads the global setting.
    with torch._inductor.config.patch(options):
        call()
    return Prepared(call, lambda: as_arrays(call()))
