"""Extents of an ONNX model: names for those that have none, and values for those that the user gives."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

import onnx

from loopwright.codegen.errors import InvalidModule
from loopwright.errors import UnsupportedModel

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "//": operator.floordiv,
}


def bind(model: onnx.ModelProto, extents: Mapping[str, int]) -> None:
    """Give the symbolic extents of a model's inputs names, and values where they are known.

    An extent has no name if the file gives none, or "?", or a number below 1: PaddlePaddle writes -1. Its name becomes
    that of the input and the axis: ``x_0``. If an extent gets a value, the shapes that the file states for other values
    are dropped, which could contradict it.

    Args:
        model: the model, which is changed.
        extents: values of symbolic extents, by name.

    Raises:
        InvalidModule: the model has no symbolic extent of a name, or an extent is below 1.
        UnsupportedModel: an extent of 0 in the file has no value. Where a tensor has no elements, TVM reads memory that
            nobody wrote.
    """
    if empty := sorted(name for name, extent in extents.items() if extent < 1):
        raise InvalidModule(f"shapes gives {', '.join(empty)} less than one element; give the extent to tune for")
    weights = {each.name for each in model.graph.initializer}
    symbols: set[str] = set()
    for each in model.graph.input:
        if each.name in weights:
            continue
        for axis, extent in enumerate(each.type.tensor_type.shape.dim):
            if extent.dim_value > 0:
                continue
            is_empty = extent.HasField("dim_value") and extent.dim_value == 0
            if extent.HasField("dim_value") or extent.dim_param in ("", "?"):
                extent.dim_param = re.sub(r"\W", "_", f"{each.name}_{axis}")
            if is_empty and extent.dim_param not in extents:
                raise UnsupportedModel(
                    f"the model's input {each.name} has no elements; give the extent {extent.dim_param} in shapes"
                )
            symbols.update(_names(extent.dim_param))
            if (value := _value(extent.dim_param, extents)) is not None:
                extent.dim_value = value
    if unknown := sorted(extents.keys() - symbols):
        raise InvalidModule(
            f"shapes names {', '.join(unknown)}, which the model does not have; its symbolic extents are: "
            f"{', '.join(sorted(symbols)) or 'none'}"
        )
    for each in (*model.graph.value_info, *model.graph.output) if extents else ():
        if each.type.HasField("tensor_type"):
            each.type.tensor_type.ClearField("shape")


def _terms(expression: str) -> list[str]:
    return re.split(r"(//|[-+*/])", expression.replace(" ", ""))


def _names(expression: str) -> list[str]:
    return [term for term in _terms(expression)[::2] if not term.isdecimal()]


def _value(expression: str, extents: Mapping[str, int]) -> int | None:
    """Return the value of an expression, from left to right as TVM's importer reads it; None if a name is unknown."""
    first, *others = _terms(expression)
    values = [int(term) if term.isdecimal() else extents.get(term) for term in (first, *others[1::2])]
    result, *behind = values
    for sign, value in zip(others[::2], behind, strict=True):
        if result is None or value is None:
            return None
        result = _OPERATORS[sign](result, value)
    return result
