"""Functions of scalars, applied to the elements of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopwright.codegen.program import broadcasting
from loopwright.frontends.torch.node import Node


def elementwise(node: Node, element: Callable[..., Any], *operands: Any) -> Any:
    """Return the results of a function of scalars of TIR for the elements of tensors, which are broadcast."""
    return node.compute(broadcasting.elementwise(element), *operands)
