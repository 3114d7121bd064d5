"""PyTorch as it is, in both memory formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from loopwright.comparing.engines.engine import Prepare, Prepared
from loopwright.comparing.given import Given, as_arrays


def variants(given: Given, threads: int) -> Iterator[tuple[str, Prepare]]:
    torch.set_num_threads(threads)
    yield "contiguous", lambda: _prepared(given, torch.contiguous_format)
    if takes_an_image(given):
        yield "channels_last", lambda: _prepared(given, torch.channels_last)


def _prepared(given: Given, memory_format: torch.memory_format) -> Prepared:
    module = given.torch_module().to(memory_format=memory_format)
    inputs, named = formatted(given.torch_inputs(), memory_format)

    def call() -> Any:
        with torch.inference_mode():
            return module(*inputs, **named)

    return Prepared(call, lambda: as_arrays(call()))


def takes_an_image(given: Given) -> bool:
    """Return whether the model has one input of four axes; several of them are attention's."""
    return [array.ndim for array in given.inputs] == [4]


def formatted(inputs: Any, memory_format: torch.memory_format) -> Any:
    """Return inputs with images in a memory format."""
    return torch.utils._pytree.tree_map(
        lambda leaf: (
            leaf.to(memory_format=memory_format) if isinstance(leaf, torch.Tensor) and leaf.dim() == 4 else leaf
        ),
        inputs,
    )
