"""One ONNX operator, as its translation sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is translated. Inputs that are left out are None, also those beyond the last one.

    ``usual`` is TVM's translation for inputs and attributes, in which strings are bytes.
    """

    operator: str
    importer: Any
    inputs: Any
    attributes: dict[str, Any]
    opset: int
    usual: Callable[[Any, dict[str, Any]], Any]

    def as_usual(self, *inputs: Any, **attributes: Any) -> Any:
        """Return TVM's translation, for other inputs and attributes where they are given."""
        arguments = type(self.inputs)(inputs) if inputs else self.inputs
        return self.usual(arguments, {**self.attributes, **attributes})

    def of(self, *inputs: Any) -> Node:
        """Return the node with other inputs."""
        return replace(self, inputs=type(self.inputs)(inputs))

    def convert(
        self,
        operator: str,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        *,
        opset: int | None = None,
        outputs: int = 1,
    ) -> Any:
        """Return the translation of another operator, of the node's opset if none is given."""
        given = {**attributes, "tvm_custom": {"name": operator, "num_outputs": outputs}}
        return self.importer._convert_operator(
            operator, type(self.inputs)(inputs), given, self.opset if opset is None else opset
        )

    def extents(self, place: int) -> list[int]:
        """Return the shape of an input.

        Raises:
            ValueError: it is symbolic.
        """
        return extents(self.importer.tensor(self.inputs[place]))

    def emit(self, expr: Any) -> Any:
        return self.importer.bb.emit(expr)

    def cast(self, value: Any, dtype: str) -> Any:
        """Return a tensor in a dtype, which it may have already."""
        return value if dtype_of(value) == dtype else self.emit(relax.op.astype(value, dtype))

    def constant(self, place: int) -> Any:
        """Return the value of an input as an array, None if it is left out.

        Raises:
            ValueError: the input is not a constant.
        """
        value = self.inputs[place]
        if value is None:
            return None
        known = constant(value)
        if known is None:
            raise ValueError(f"whose input {place} is not a constant")
        return known

    @property
    def outputs(self) -> int:
        return int(self.attributes["tvm_custom"]["num_outputs"])

    def text(self, name: str, default: str) -> str:
        return bytes(self.attributes.get(name, default.encode())).decode()


Converter = Callable[[Node], Any]


def constant(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the value of a tensor, a shape or an extent as an array; None if it is not known."""
    if isinstance(value, tvm.ir.GenericConst):
        return np.asarray(value.value.numpy())
    if isinstance(value, relax.ShapeExpr):
        extents = [extent.value for extent in value.values if isinstance(extent, tirx.IntImm)]
        return np.array(extents, "int64") if len(extents) == len(value.values) else None
    return np.array(value.value) if isinstance(value, tirx.IntImm | tirx.FloatImm) else None


def dtype_of(value: Any) -> str:
    """Return the dtype of a tensor; empty for anything else."""
    return str(value.ty.dtype) if isinstance(getattr(value, "ty", None), relax.TensorType) else ""


def is_empty(value: Any) -> bool:
    """Return whether a tensor is known to have no elements."""
    shape = getattr(getattr(value, "ty", None), "shape", None)
    return any(isinstance(extent, tirx.IntImm) and extent.value == 0 for extent in shape or ())


def extents(value: Any) -> list[int]:
    """Return the shape of a tensor.

    Raises:
        ValueError: it is symbolic.
    """
    known = None if value.ty.shape is None else constant(value.ty.shape)
    if known is None:
        raise ValueError("whose shape has symbols; give their values, as shapes={'name': value}")
    return [int(extent) for extent in known]
