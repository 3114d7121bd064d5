"""Elements of tensors that are broadcast, in TE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te


def broadcast(shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the shape to which shapes are broadcast. A symbolic extent is taken to be the same as others."""
    result: list[Any] = []
    for axis in range(max(map(len, shapes))):
        extents = [shape[len(shape) - 1 - axis] for shape in shapes if axis < len(shape)]
        result.insert(0, next((extent for extent in extents if not _is_one(extent)), extents[0]))
    return result


def at(tensor: te.Tensor, place: Sequence[Any]) -> Any:
    """Return the element at a place in the shape to which a tensor is broadcast."""
    own = place[len(place) - len(tensor.shape) :]
    return tensor(*(0 if _is_one(extent) else index for extent, index in zip(tensor.shape, own, strict=True)))


def elementwise(element: Callable[..., Any]) -> Callable[..., te.Tensor]:
    """Return the function of tensors, which are broadcast, that applies a function of scalars to their elements."""

    def compute(*tensors: te.Tensor) -> te.Tensor:
        shape = broadcast([tensor.shape for tensor in tensors])
        return te.compute(shape, lambda *place: element(*(at(tensor, place) for tensor in tensors)), name="elementwise")

    return compute


def _is_one(extent: Any) -> bool:
    return isinstance(value := getattr(extent, "value", extent), int) and value == 1
