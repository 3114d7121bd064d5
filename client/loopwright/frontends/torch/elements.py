"""Functions of scalars, applied to the elements of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te

from loopwright.codegen.program.broadcasting import at, broadcast
from loopwright.frontends.torch.node import Node


def elementwise(node: Node, element: Callable[..., Any], *operands: Any) -> Any:
    """Return the results of a function of scalars of TIR for the elements of tensors, which are broadcast."""

    def compute(*tensors: te.Tensor) -> te.Tensor:
        shape = broadcast([tensor.shape for tensor in tensors])
        return te.compute(shape, lambda *place: element(*(at(tensor, place) for tensor in tensors)), name="elementwise")

    return node.compute(compute, *operands)
