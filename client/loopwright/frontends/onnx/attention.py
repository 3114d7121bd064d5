"""Attention of decoders as ONNX Runtime has it: rotations by positions, and queries in groups with a cache."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.node import Converter, Node, dtype_of, extents

_REFUSED = {
    "smooth_softmax": 0,
    "qk_output": 0,
    "k_quant_type": b"NONE",
    "v_quant_type": b"NONE",
    "kv_cache_bit_width": 0,
}
"""Attributes of GroupQueryAttention that are not translated, and the value that has no effect."""
_INPUTS = ("head_sink", "k_scale", "v_scale")
"""Its last inputs, which are not translated."""


def _rotation(node: Node) -> Any:
    """Convert a rotation of pairs of channels, by angles of positions, of ONNX Runtime's RotaryEmbedding.

    Data are [batch, positions, heads * width] or [batch, heads, positions, width]; there is a position for each place,
    or the first one. The tables of cosines and sines are [positions, rotated channels / 2].
    """
    data, positions, cosines, sines = (node.inputs[place] for place in range(4))
    if node.attributes.get("is_packed_batching", 0) or float(node.attributes.get("scale", 1)) != 1:
        raise ValueError("with packed batches or a scale; write it by the operators of ONNX")
    shape = node.extents(0)
    turned = 2 * int(cosines.ty.shape[1])
    batch, length = (shape[0], shape[-2])
    if len(shape) == 3:
        heads = int(node.attributes.get("num_heads", 0)) or shape[2] // turned
        rows = node.emit(relax.op.reshape(data, [batch, length, heads, shape[2] // heads]))
    else:
        rows = node.emit(relax.op.permute_dims(data, [0, 2, 1, 3]))
    if len(positions.ty.shape) < 2:
        steps = relax.op.arange(0, length, 1, "int64")
        positions = node.emit(relax.op.expand_dims(relax.op.add(steps, positions), 0))
    result = _rotated(node.emit, rows, positions, (cosines, sines), bool(node.attributes.get("interleaved", 0)))
    return relax.op.reshape(result, shape) if len(shape) == 3 else relax.op.permute_dims(result, [0, 2, 1, 3])


def _rotated(emit: Callable[[Any], Any], rows: Any, positions: Any, tables: tuple[Any, Any], pairs: bool) -> Any:
    """Return rows [batch, positions, heads, width] rotated; with ``pairs``, those of neighbours, else of halves."""
    batch, length, heads, width = rows.ty.shape
    turned = 2 * int(tables[0].ty.shape[1])
    cosine, sine = (emit(relax.op.expand_dims(relax.op.take(each, positions, 0, mode="clip"), 2)) for each in tables)
    bounds = [(0, turned, 2), (1, turned, 2)] if pairs else [(0, turned // 2, 1), (turned // 2, turned, 1)]
    first, second = (emit(relax.op.strided_slice(rows, [3], [a], [b], [c])) for a, b, c in bounds)
    results = [
        relax.op.subtract(relax.op.multiply(first, cosine), relax.op.multiply(second, sine)),
        relax.op.add(relax.op.multiply(second, cosine), relax.op.multiply(first, sine)),
    ]
    results = [emit(each) for each in results]
    if pairs:
        results = [emit(relax.op.reshape(emit(relax.op.stack(results, -1)), [batch, length, heads, turned]))]
    if turned < int(width):
        results.append(emit(relax.op.strided_slice(rows, [3], [turned], [int(width)])))
    return results[0] if len(results) == 1 else emit(relax.op.concat(results, -1))


def _grouped(node: Node) -> Any:
    """Convert GroupQueryAttention: causal attention of queries whose heads share keys and values in groups.

    New keys and values follow ``seqlens_k + 1 - length`` earlier ones of a cache, or none if ``total_sequence_length``
    is the length. The caches that it returns are as long as the longer of the cache before and of
    ``total_sequence_length``, which must be constant; what is behind the new rows is 0.
    """
    emit, inner = node.emit, wide(node.inputs[0])
    for name, default in _REFUSED.items():
        if node.attributes.get(name, default) != default:
            raise ValueError(f"with the attribute {name}; export the model without it")
    for place, name in enumerate(_INPUTS, 11):
        if node.inputs[place] is not None:
            raise ValueError(f"with the input {name}; export the model without it")
    if node.inputs[5] is None or node.constant(6) is None:
        raise ValueError("without seqlens_k or total_sequence_length")
    total = int(np.asarray(node.constant(6)).reshape(-1)[0])
    heads, groups = (int(node.attributes[name]) for name in ("num_heads", "kv_num_heads"))
    batch, length, width = node.extents(0)
    if node.inputs[1] is None:
        size = width // (heads + 2 * groups)
        bounds = [0, heads * size, (heads + groups) * size, width]
        parts = [
            relax.op.strided_slice(node.inputs[0], [2], [first], [last]) for first, last in itertools.pairwise(bounds)
        ]
    else:
        size, parts = width // heads, list(node.inputs[:3])
    query, key, value = (
        node.cast(emit(relax.op.reshape(emit(part), [batch, length, count, size])), inner)
        for part, count in zip(parts, (heads, groups, groups), strict=True)
    )
    start = _start(node, batch, length, total)
    places = emit(relax.op.add(emit(relax.op.expand_dims(start, 1)), _steps(length)))  # [batch, length]
    if node.attributes.get("do_rotary", 0):
        tables = (node.cast(node.inputs[7], inner), node.cast(node.inputs[8], inner))
        positions = places if node.inputs[9] is None else node.inputs[9]
        pairs = bool(node.attributes.get("rotary_interleaved", 0))
        query, key = (_rotated(emit, rows, positions, tables, pairs) for rows in (query, key))
    keys, values = (
        _extended(node, past if past is None else node.cast(past, inner), rows, start, total)
        for past, rows in zip((node.inputs[3], node.inputs[4]), (key, value), strict=True)
    )
    result = _attended(node, emit(relax.op.permute_dims(query, [0, 2, 1, 3])), keys, values, places)
    result = emit(relax.op.reshape(emit(relax.op.permute_dims(result, [0, 2, 1, 3])), [batch, length, heads * size]))
    results = [node.cast(each, dtype_of(node.inputs[0])) for each in (result, keys, values)]
    return relax.Tuple(results[: node.outputs]) if node.outputs > 1 else results[0]


def _start(node: Node, batch: int, length: int, total: int) -> Any:
    """Return how many rows of the cache are before the new ones, as int64 [batch]."""
    if length == total:
        return relax.const(np.zeros(batch, "int64"), "int64")
    lengths = node.emit(relax.op.astype(node.emit(relax.op.reshape(node.inputs[5], [batch])), "int64"))
    return node.emit(relax.op.add(lengths, relax.const(np.array([1 - length], "int64"), "int64")))


def _steps(count: int) -> Any:
    return relax.const(np.arange(count, dtype="int64"), "int64")


def _extended(node: Node, past: Any, rows: Any, start: Any, total: int) -> Any:
    """Return a cache [batch, heads, rows, width] with new rows [batch, rows, heads, width] from a place on."""
    batch, length, heads, width = extents(rows)
    known = 0 if past is None else extents(past)[2]
    shape = (batch, heads, max(total, known), width)

    def compute(new: te.Tensor, first: te.Tensor, *before: te.Tensor) -> te.Tensor:
        def element(*i: Any) -> Any:
            b, head, place, channel = i
            there = place - first[b]
            inside = tirx.max(tirx.min(there, length - 1), 0)
            old: Any = tirx.const(0, dtype_of(rows))
            if before:
                old = tirx.Select(there < 0, before[0][b, head, tirx.min(place, known - 1), channel], old)
            return tirx.Select(tirx.And(there >= 0, there < length), new[b, inside, head, channel], old)

        return te.compute(shape, element, name="cache")

    operands = [rows, start] if past is None else [rows, start, past]
    return node.importer.bb.emit_te(compute, *operands, primfunc_name_hint="cache")


def _attended(node: Node, query: Any, keys: Any, values: Any, places: Any) -> Any:
    """Return attention of queries [batch, heads, rows, width], each of which sees what is not behind its place."""
    emit = node.emit
    batch, heads, length, size = extents(query)
    groups, capacity = extents(keys)[1:3]

    def repeated(cache: Any) -> Any:
        wider = emit(relax.op.expand_dims(cache, 2))
        wider = emit(relax.op.broadcast_to(wider, [batch, groups, heads // groups, capacity, size]))
        return emit(relax.op.reshape(wider, [batch, heads, capacity, size]))

    scale = float(node.attributes.get("scale", 0)) or 1 / math.sqrt(size)
    scores = emit(relax.op.matmul(query, emit(relax.op.permute_dims(repeated(keys), [0, 1, 3, 2]))))
    scores = emit(relax.op.multiply(scores, relax.const(scale, dtype_of(scores))))
    if softcap := float(node.attributes.get("softcap", 0)):
        limit = relax.const(softcap, dtype_of(scores))
        scores = emit(relax.op.multiply(emit(relax.op.tanh(emit(relax.op.divide(scores, limit)))), limit))
    if (bias := node.inputs[10]) is not None:
        rest = capacity - extents(bias)[3]
        bias = node.cast(bias, dtype_of(scores))
        bias = emit(relax.op.nn.pad(bias, [0] * 6 + [0, rest])) if rest else bias
        scores = emit(relax.op.add(scores, bias))
    place, column = emit(relax.op.reshape(places, [batch, 1, length, 1])), _steps(capacity)
    seen = emit(relax.op.less_equal(column, place))
    window = int(node.attributes.get("local_window_size", -1))
    if window > 0:
        first = emit(relax.op.subtract(place, relax.const(window, "int64")))
        seen = emit(relax.op.logical_and(seen, emit(relax.op.greater(column, first))))
    lowest = relax.const(-math.inf, dtype_of(scores))
    weights = emit(relax.op.nn.softmax(emit(relax.op.where(seen, scores, lowest)), -1))
    return emit(relax.op.matmul(weights, repeated(values)))


CONVERTERS: dict[str, Converter] = {"GroupQueryAttention": _grouped, "RotaryEmbedding": _rotation}
