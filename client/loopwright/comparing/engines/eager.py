"""PyTorch as it is, in both memory formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from loopwright.comparing.case import Case, as_arrays
from loopwright.comparing.engines.engine import Prepare, Prepared


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    torch.set_num_threads(threads)
    yield "contiguous", lambda: _prepared(case, torch.contiguous_format)
    if takes_an_image(case):
        yield "channels_last", lambda: _prepared(case, torch.channels_last)


def _prepared(case: Case, memory_format: torch.memory_format) -> Prepared:
    module = case.torch_module().to(memory_format=memory_format)
    inputs, named = formatted(case.torch_inputs(), memory_format)

    def call() -> Any:
        with torch.inference_mode():
            return module(*inputs, **named)

    return Prepared(call, lambda: as_arrays(call()))


def takes_an_image(case: Case) -> bool:
    """Return whether the model has one input of four axes; several of them are attention's."""
    return [array.ndim for array in case.inputs] == [4]


def formatted(inputs: Any, memory_format: torch.memory_format) -> Any:
    """Return inputs with images in a memory format."""
    return torch.utils._pytree.tree_map(
        lambda leaf: (
            leaf.to(memory_format=memory_format) if isinstance(leaf, torch.Tensor) and leaf.dim() == 4 else leaf
        ),
        inputs,
    )
