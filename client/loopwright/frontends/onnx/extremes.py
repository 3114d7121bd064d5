"""Operators that select by size, whose limits, places and NaN TVM's importer treats otherwise.

How Relax's own maxima and minima treat NaN is a matter of `loopwright.codegen.program.extremes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax, tirx

from loopwright.codegen.program.broadcasting import elementwise
from loopwright.frontends.onnx.node import Converter, Node, constant, dtype_of

_LARGEST = float(np.finfo("float32").max)


def _sign(node: Node) -> Any:
    (data,) = node.inputs
    dtype = dtype_of(data)
    if dtype.startswith("u"):
        return relax.op.minimum(data, relax.const(1, dtype))
    result = node.as_usual()
    return relax.op.where(node.emit(relax.op.isnan(data)), data, node.emit(result)) if "float" in dtype else result


def _clip(node: Node) -> Any:
    data, low, high = (*node.inputs[:3], None, None)[:3]
    dtype = dtype_of(data)
    if node.opset < 11:
        # Without a bound, infinities become the largest numbers of float32.
        bounds = (node.attributes.get("min", -_LARGEST), node.attributes.get("max", _LARGEST))
        with np.errstate(over="ignore"):
            low, high = (relax.const(np.array(bound).astype(dtype), dtype) for bound in bounds)
    result = data
    for bound, limit, unlimited in ((low, relax.op.maximum, -np.inf), (high, relax.op.minimum, np.inf)):
        if bound is None:
            continue
        if "float" in dtype and constant(bound) is None:
            bound = node.emit(relax.op.where(relax.op.isnan(bound), relax.const(unlimited, dtype), bound))
        result = node.emit(limit(result, bound))
    return result


def _global_max_pool(node: Node) -> Any:
    axes = list(range(2, len(node.inputs[0].ty.shape)))
    return relax.op.max(node.inputs[0], axes, keepdims=True)


def _place(node: Node) -> Any:
    """Convert ArgMax or ArgMin: the first place of equal elements, or the last one."""
    data, find = node.inputs[0], relax.op.argmin if node.operator == "ArgMin" else relax.op.argmax
    axis = node.attributes.get("axis", 0) % len(data.ty.shape)
    keepdims = bool(node.attributes.get("keepdims", 1))
    if not node.attributes.get("select_last_index", 0):
        return find(data, axis, keepdims)
    behind = node.emit(find(node.emit(relax.op.flip(data, axis)), axis, keepdims))
    return relax.op.subtract(relax.const(node.extents(0)[axis] - 1, "int64"), behind)


def _largest_places(node: Node) -> Any:
    """Convert TopK. NaN is the largest element, as in NumPy; of equal elements the first is taken.

    TVM sorts no rows that have NaN, and some dtypes not at all: keys that are integers are sorted.
    """
    data, axis = node.inputs[0], node.attributes.get("axis", -1) % len(node.inputs[0].ty.shape)
    if not node.attributes.get("sorted", 1):
        raise ValueError("with sorted = 0, whose order is undefined; set sorted to 1")
    count = int(node.attributes["k"]) if node.opset < 10 else int(node.constant(1).item())
    if not 0 < count <= node.extents(0)[axis]:
        raise ValueError(f"of {count} elements of an axis that has {node.extents(0)[axis]}")
    keys = node.importer.bb.emit_te(elementwise(_key), data, primfunc_name_hint="key")
    largest = bool(node.attributes.get("largest", 1))
    places = node.emit(relax.op.topk(keys, count, axis, "indices", largest, "int64"))
    return relax.Tuple([node.emit(relax.op.gather_elements(data, places, axis)), places])


def _key(value: Any) -> Any:
    """Return an integer that is less than another one's if the value is, and the largest one for NaN."""
    dtype = str(value.ty)
    wide = "int64" if "64" in dtype or dtype == "uint32" else "int32"
    if dtype == "uint64":
        return tirx.reinterpret(wide, value ^ tirx.const(1 << 63, dtype))
    if "float" not in dtype:
        return value.astype(wide)
    number = value.astype("float64" if dtype == "float64" else "float32")
    zero = tirx.const(0, number.ty)
    pattern = tirx.reinterpret(wide, tirx.Select(number == zero, zero, number))  # -0 is 0
    key = tirx.Select(pattern < 0, pattern ^ tirx.max_value(wide), pattern)
    return tirx.Select(tirx.isnan(number), tirx.max_value(wide), key)


CONVERTERS: dict[str, Converter] = {
    "ArgMax": _place,
    "ArgMin": _place,
    "Clip": _clip,
    "GlobalMaxPool": _global_max_pool,
    "Sign": _sign,
    "TopK": _largest_places,
}
