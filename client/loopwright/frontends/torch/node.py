"""One operator of PyTorch, as its translation sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te

_WIDE = {"float16": "float32", "bfloat16": "float32"}


@dataclass(frozen=True, slots=True)
class Node:
    """A call of an operator in PyTorch's graph.

    ``arguments`` are by their names in the operator's schema, tensors as Relax expressions and symbolic extents as
    expressions of TIR; arguments that are left out have their defaults. ``result`` is a tensor of PyTorch with the
    dtype and the shape of the result, or a tuple of such tensors. ``usual`` is TVM's own translation.
    """

    operator: str
    arguments: Mapping[str, Any]
    result: Any
    builder: Any
    usual: Callable[[], Any]
    used: frozenset[int] | None = None
    """Which of several results are used; None if all may be."""
    known: Callable[[str], Any] = lambda name: None
    """From the name of an argument to its value, if it follows from a few numbers that the model contains."""

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def dtype(self) -> str:
        """The dtype of the result, or of the first of several results."""
        return dtype_of(self.result[0] if isinstance(self.result, tuple | list) else self.result)

    def uses(self, place: int) -> bool:
        """Return whether one of several results is used."""
        return self.used is None or place in self.used

    def emit(self, expr: Any) -> Any:
        return self.builder.emit(expr)

    def compute(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return what a function of TE tensors computes, which is one PrimFunc with the operator's name."""
        name = self.operator.split(".")[0].strip("_")
        return self.builder.emit_te(function, *operands, primfunc_name_hint=name)

    def cast(self, value: Any, dtype: str) -> Any:
        """Return a tensor, a number or a symbolic extent as a tensor of a dtype. NaN is true."""
        if not is_tensor(value):
            return self._number(value, dtype)
        own = str(value.ty.dtype)
        if own == dtype:
            return value
        if dtype == "bool":
            return self.differs(value, relax.const(0, own))
        return self.emit(relax.op.astype(value, dtype))

    def differs(self, left: Any, right: Any) -> Any:
        """Return whether elements of one dtype differ. TVM's comparison is false for NaN, which differs from all."""
        result = self.emit(relax.op.not_equal(left, right))
        for operand in (left, right):
            if "float" in str(operand.ty.dtype) and isinstance(operand, relax.Var):
                result = self.emit(relax.op.logical_or(result, self.emit(relax.op.isnan(operand))))
        return result

    def _number(self, value: Any, dtype: str) -> Any:
        if isinstance(value, bool | int | float):
            return constant(value, dtype)
        return self.builder.emit_te(
            lambda extent: te.compute((), lambda: extent.astype(dtype), name="extent"),
            value,
            primfunc_name_hint="extent",
        )


Converter = Callable[[Node], Any]
"""From a node to the Relax expression of its result, or to a tuple of them."""


def constant(value: bool | int | float, dtype: str) -> Any:
    """Return a number as a tensor without axes. Integers wrap around, as they do in PyTorch."""
    if dtype in ("bool", "bfloat16") or math.isnan(value) or not float(value).is_integer() or "float" in dtype:
        return relax.const(value, dtype)
    return relax.const(np.array(value).astype(dtype), dtype)


def dtype_of(value: Any) -> str:
    """Return TVM's name for the dtype of a tensor of PyTorch, or of its two parts if it is complex."""
    dtype = value.dtype.to_real() if value.dtype.is_complex else value.dtype
    return str(dtype).removeprefix("torch.")


def wide(dtype: str) -> str:
    """Return the dtype in which PyTorch computes with elements of a dtype: float32 for float16 and bfloat16."""
    return _WIDE.get(dtype, dtype)


def is_tensor(value: Any) -> bool:
    return isinstance(getattr(value, "ty", None), relax.TensorType)


def extents(value: Any) -> list[int]:
    """Return the shape of a tensor.

    Raises:
        ValueError: it is symbolic.
    """
    shape = list(value.ty.shape)
    if not all(is_known(extent) for extent in shape):
        raise ValueError("has no translation for symbolic extents")
    return [int(extent) for extent in shape]


def is_known(extent: Any) -> bool:
    return isinstance(extent, int) or hasattr(extent, "value")
