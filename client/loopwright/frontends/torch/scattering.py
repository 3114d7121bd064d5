"""Writes of PyTorch at indices, in Relax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax, te, tirx
from tvm.script import tirx as T

from loopwright.codegen.extremes import infinity, larger, smaller
from loopwright.codegen.program.broadcasting import at, broadcast
from loopwright.codegen.program.extremes import reducer
from loopwright.frontends.torch.indexing import from_start
from loopwright.frontends.torch.node import Converter, Node, extents, is_known, wide


def _scatter(node: Node) -> Any:
    """Convert a scatter of a tensor, or of one value; only as many of its elements as there are indices are read."""
    return relax.op.scatter_elements(node["self"], node["index"], _source(node, node["self"]), axis=node["dim"])


def _source(node: Node, data: Any) -> Any:
    shape, source = extents(node["index"]), node.arguments.get("src")
    if source is None:
        return node.emit(relax.op.broadcast_to(node.cast(node["value"], str(data.ty.dtype)), shape))
    if extents(source) == shape:
        return source
    axes = list(range(len(shape)))
    return node.emit(relax.op.strided_slice(source, axes, [0] * len(axes), shape, [1] * len(axes)))


def _scatter_add(node: Node) -> Any:
    return _reduced(node, "add", node["self"], _source(node, node["self"]), None)


def _scatter_reduce(node: Node) -> Any:
    kind, own, data, source = node["reduce"], node.dtype, node["self"], _source(node, node["self"])
    if kind == "mean":
        if "float" not in own:
            raise ValueError("takes means of integers; compute with floating-point numbers")
        one, other = (node.emit(relax.op.ones_like(each)) for each in (data, source))
        return relax.op.divide(_reduced(node, "add", data, source, 0), _reduced(node, "add", one, other, 0))
    if kind not in ("amax", "amin"):
        return _reduced(node, {"sum": "add", "prod": "mul"}[kind], data, source, int(kind == "prod"))
    return _extreme(node, larger if kind == "amax" else smaller, -1 if kind == "amax" else 1, source)


def _extreme(node: Node, pair: Any, sign: int, source: Any) -> Any:
    """Return the extremes of the elements that go to each place, which are looked for in the whole axis."""
    dim, reduce, with_self = int(node["dim"]), reducer(pair, sign), node["include_self"]

    def extreme(data: te.Tensor, index: te.Tensor, source: te.Tensor) -> te.Tensor:
        own = dim % len(data.shape)
        each, other = (te.reduce_axis((0, index.shape[own]), "k") for _ in range(2))

        def goes(place: Any, number: Any) -> tuple[list[Any], Any]:
            where = [*place[:own], number, *place[own + 1 :]]
            inside = [where[axis] < index.shape[axis] for axis in range(len(where)) if axis != own]
            return where, tirx.all(*inside, index(*where) == tirx.Cast(index.dtype, place[own]))

        def element(*place: Any) -> Any:
            where, is_here = goes(place, each)
            return reduce(tirx.if_then_else(is_here, source(*where), infinity(source.dtype, sign)), axis=each)

        def is_written(*place: Any) -> Any:
            _, is_here = goes(place, other)
            return te.max(tirx.if_then_else(is_here, tirx.const(1, "int8"), tirx.const(0, "int8")), axis=other)

        found = te.compute(data.shape, element, name="extreme")
        if with_self:
            return te.compute(data.shape, lambda *place: pair(data(*place), found(*place)), name="with_self")
        written = te.compute(data.shape, is_written, name="written")
        return te.compute(
            data.shape,
            lambda *place: tirx.Select(written(*place) > tirx.const(0, "int8"), found(*place), data(*place)),
            name="written_or_self",
        )

    return node.compute(extreme, node["self"], node["index"], source)


def _reduced(node: Node, reduction: str, data: Any, source: Any, identity: Any) -> Any:
    """Return a scatter that reduces elements, in their dtype. Without ``include_self`` it begins with the identity."""
    own = str(data.ty.dtype)
    inner = _of_sums(own)
    data, source, index, axis = node.cast(data, inner), node.cast(source, inner), node["index"], node["dim"]
    if not node.arguments.get("include_self", True):
        first = node.emit(relax.op.full_like(source, node.cast(identity, inner)))
        data = node.emit(relax.op.scatter_elements(data, index, first, axis=axis))
    return node.cast(node.emit(relax.op.scatter_elements(data, index, source, axis=axis, reduction=reduction)), own)


def _of_sums(dtype: str) -> str:
    """Return the dtype in which elements of a dtype are added and multiplied; booleans are counted."""
    return "int32" if dtype == "bool" else wide(dtype)


def _index_put(node: Node) -> Any:
    """Convert an assignment to ``x[…]``: to elements where masks are true, or to those at indices."""
    indices = list(node["indices"])
    if any(index is not None and 0 in map(int, filter(is_known, index.ty.shape)) for index in indices):
        return node["self"]
    masks = [index for index in indices if index is not None and str(index.ty.dtype) == "bool"]
    if not masks:
        return _put_at_indices(node, indices)
    if len(masks) > 1 or indices[0] is None or len([index for index in indices if index is not None]) > 1:
        raise ValueError("writes through a mask and another index; write through one of them after the other")
    return _put_by_mask(node, masks[0])


def _put_by_mask(node: Node, mask: Any) -> Any:
    data, values = node["self"], node["values"]
    rank, of_mask = len(data.ty.shape), len(mask.ty.shape)
    if len(values.ty.shape) > rank - of_mask and extents(values)[: len(values.ty.shape) - (rank - of_mask)] != [1]:
        raise ValueError("writes as many values as a mask has true elements; use torch.where")
    mask = node.emit(relax.op.reshape(mask, [*mask.ty.shape, *[1] * (rank - of_mask)]))
    values = node.cast(values, node.dtype)
    if node["accumulate"]:
        values = node.emit((relax.op.logical_or if node.dtype == "bool" else relax.op.add)(data, values))
    return relax.op.where(mask, values, data)


def _put_at_indices(node: Node, indices: Sequence[Any]) -> Any:
    """Write by `scatter_nd` over one index for each element, of all axes in the order of the tensor."""
    data, own = node["self"], node.dtype
    shape, axes = extents(data), [axis for axis, index in enumerate(indices) if index is not None]
    tensors = [indices[axis] for axis in axes]
    common = [int(extent) for extent in broadcast([extents(tensor) for tensor in tensors])]
    if common == [1] and len(axes) == 1 and not node["accumulate"]:
        return _put_at_place(node, axes[0], tensors[0])
    together = axes == list(range(axes[0], axes[-1] + 1))
    first = axes[0] if together else 0
    others = [axis for axis in range(len(shape)) if axis not in axes]
    whole = [*(shape[axis] for axis in others[:first]), *common, *(shape[axis] for axis in others[first:])]

    def places(*indices: te.Tensor) -> te.Tensor:
        def element(*place: Any) -> Any:
            *where, axis = place
            of_indices = where[first : first + len(common)]
            rest = iter([*where[:first], *where[first + len(common) :]])
            result = tirx.const(0, "int64")
            for each, extent in enumerate(shape):
                if each in axes:
                    index = from_start(at(indices[axes.index(each)], of_indices), tirx.const(extent, "int64"))
                else:
                    index = next(rest)
                result = tirx.Select(axis == each, tirx.Cast("int64", index), result)
            return result

        return te.compute([*whole, len(shape)], element, name="places")

    index = node.compute(places, *tensors)
    values = node.emit(relax.op.broadcast_to(node.cast(node["values"], own), whole))
    accumulates = bool(node["accumulate"])
    inner = _of_sums(own) if accumulates else own
    result = relax.op.scatter_nd(
        node.cast(data, inner), index, node.cast(values, inner), "add" if accumulates else "update"
    )
    return node.cast(node.emit(result), own)


def _put_at_place(node: Node, axis: int, index: Any) -> Any:
    """Write at one place of an axis by a choice between new and old elements, which can be done in place."""
    data, shape = node["self"], extents(node["self"])

    def is_here(index: te.Tensor) -> te.Tensor:
        place = from_start(tirx.Cast("int64", index[0]), tirx.const(shape[axis], "int64"))
        return te.compute((shape[axis], *[1] * (len(shape) - 1 - axis)), lambda *i: tirx.Cast("int64", i[0]) == place)

    values = relax.op.broadcast_to(node.cast(node["values"], node.dtype), [*shape[:axis], 1, *shape[axis + 1 :]])
    return relax.op.where(node.compute(is_here, index), node.emit(values), data)


def _write_rows(node: Node) -> Any:
    """Convert writes of the rows of a decoder's cache (`loopwright.decoding.cache`) to writes in place.

    A copy would take the time of the whole cache, of which a call changes as many rows as it has tokens.
    """
    rows, new, position = (node[name] for name in ("rows", "new", "position"))
    writer = node.builder.add_func(_writer(extents(rows), extents(new), node.dtype), "write_rows")
    return relax.op.call_tir_inplace(writer, [rows, new, position], 0, rows.ty)


def _writer(rows: Sequence[int], new: Sequence[int], dtype: str) -> tirx.PrimFunc:
    """Return a function that writes ``new`` into axis 2 of ``rows`` from a position on."""

    @T.prim_func(private=True, s_tir=True)
    def write_rows(cache_: T.handle, new_: T.handle, position_: T.handle) -> None:
        T.func_attr({"tirx.noalias": True})
        cache = T.match_buffer(cache_, rows, dtype)
        added = T.match_buffer(new_, new, dtype)
        position = T.match_buffer(position_, (), "int64")
        for b, h, t, d in T.grid(*new):
            with T.sblock("write_rows"):
                vb, vh, vt, vd = T.axis.remap("SSSS", [b, h, t, d])
                cache[vb, vh, position[()] + vt, vd] = added[vb, vh, vt, vd]

    return write_rows


CONVERTERS: dict[str, Converter] = {
    "index_put.default": _index_put,
    "scatter.src": _scatter,
    "scatter.value": _scatter,
    "scatter_add.default": _scatter_add,
    "scatter_reduce.two": _scatter_reduce,
    "write_rows.default": _write_rows,
}
