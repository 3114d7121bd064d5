"""PyTorch as it is, in both memory formats."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.quality.engines.engine import Prepare, Prepared
from benchmarks.quality.shared import Shared, as_array


def variants(shared: Shared, threads: int) -> Iterator[tuple[str, Prepare]]:
    torch.set_num_threads(threads)
    yield "contiguous", lambda: _prepared(shared, torch.contiguous_format)
    if takes_an_image(shared):
        yield "channels_last", lambda: _prepared(shared, torch.channels_last)


def _prepared(shared: Shared, memory_format: torch.memory_format) -> Prepared:
    module = shared.torch_module().to(memory_format=memory_format)
    inputs = formatted(shared.torch_inputs(), memory_format)

    def call() -> torch.Tensor:
        with torch.inference_mode():
            return module(*inputs)

    return Prepared(call, lambda: as_array(call()))


def takes_an_image(shared: Shared) -> bool:
    """Return whether the case has one input of four axes; several of them are attention's."""
    return [array.ndim for array in shared.inputs] == [4]


def formatted(inputs: tuple[torch.Tensor, ...], memory_format: torch.memory_format) -> tuple[torch.Tensor, ...]:
    """Return the inputs with images in a memory format."""
    return tuple(tensor.to(memory_format=memory_format) if tensor.dim() == 4 else tensor for tensor in inputs)
