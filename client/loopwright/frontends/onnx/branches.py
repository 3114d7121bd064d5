"""Branches of ONNX models. A condition that constants decide takes one at import; otherwise both are computed."""

from __future__ import annotations

from typing import Any

import onnx
from tvm import relax
from tvm_ffi import structural_equal

from loopwright.frontends.onnx.node import constant

_ADVICE = "if an extent decides which branch is taken, give its value, as shapes={'name': value}"


def either(importer: Any, node: onnx.NodeProto, condition: Any) -> list[Any]:
    """Return the outputs of If.

    A branch that has no translation, most often since it is for other extents than the given ones, is left out: a call
    that would take it raises AssertionError.

    Raises:
        ValueError: no branch has a translation, or the outputs of the branches differ in shape or dtype.
    """
    branches = [next(each.g for each in node.attribute if each.name == f"{name}_branch") for name in ("then", "else")]
    if (known := constant(condition)) is not None:
        results: list[Any] = importer.call(branches[0 if known.item() else 1], [])
        return results
    takes_first = importer.bb.emit(relax.op.reshape(condition, []))
    results, errors = [], []
    for branch in branches:
        try:
            results.append(importer.call(branch, []))
            errors.append("")
        except ValueError as error:
            errors.append(str(error))
    if not results:
        raise ValueError(errors[0])
    if len(results) == 1:
        takes_only = takes_first if errors[1] else importer.bb.emit(relax.op.logical_not(takes_first))
        missing = f"the other branch of If {node.name} has no translation: {errors[0] or errors[1]}"
        importer.check(takes_only, missing)
        return results[0]
    return [_selected(importer, takes_first, *pair) for pair in zip(*results, strict=True)]


def _selected(importer: Any, condition: Any, value: Any, other: Any) -> Any:
    if not isinstance(value.ty, relax.TensorType) or not structural_equal(value.ty, other.ty):
        raise ValueError(f"operator If, whose branches return tensors of different shapes or dtypes; {_ADVICE}")
    return importer.bb.emit(relax.op.where(condition, value, other))
