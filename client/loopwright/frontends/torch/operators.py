"""Products, convolutions and other operators of PyTorch in Relax that TVM's importer lacks, or translates differently.

TVM gives products and convolutions results of float32 whatever their arguments are: a bias of another dtype cannot be
added then, and float64 loses digits. Here float16 and bfloat16 are summed in float32 and rounded once, as PyTorch does.
"""

from __future__ import annotations

from typing import Any

import torch
from tvm import relax, te, tirx

from loopwright.frontends.torch.node import Converter, Node, is_known, wide

_LETTERS = {3: "W", 4: "HW", 5: "DHW"}
"""Of the dimensions behind batch and channels, by the rank of the input."""


def _product(node: Node) -> Any:
    inner = wide(node.dtype)
    return node.cast(node.emit(relax.op.matmul(node["self"], node["mat2"], out_dtype=inner)), node.dtype)


def _addmm(node: Node) -> Any:
    inner, alpha, beta = wide(node.dtype), node["alpha"], node["beta"]
    shape = list(node["mat1"].ty.shape)
    if is_known(shape[1]) and int(shape[1]) == 0:
        result = node.emit(relax.op.zeros([shape[0], node["mat2"].ty.shape[1]], inner))
    else:
        result = node.emit(relax.op.matmul(node["mat1"], node["mat2"], out_dtype=inner))
    if alpha != 1:
        result = node.emit(relax.op.multiply(result, node.cast(alpha, inner)))
    if beta != 0:  # else PyTorch does not read the bias, which may be NaN
        bias = node.cast(node["self"], inner)
        if beta != 1:
            bias = node.emit(relax.op.multiply(bias, node.cast(beta, inner)))
        result = node.emit(relax.op.add(bias, result))
    return node.cast(result, node.dtype)


def _convolution(node: Node) -> Any:
    transposed, inner = node["transposed"], wide(node.dtype)
    letters = _LETTERS[len(node["input"].ty.shape)]
    name = f"conv{len(letters)}d" + ("_transpose" if transposed else "")
    operator = getattr(relax.op.nn, name, None)
    if operator is None:
        raise ValueError(f"Unsupported operator {name}")
    result = node.emit(
        operator(
            node["input"],
            node["weight"],
            strides=node["stride"],
            padding=node["padding"],
            dilation=node["dilation"],
            groups=node["groups"],
            data_layout=f"NC{letters}",
            kernel_layout=f"{'IO' if transposed else 'OI'}{letters}",
            out_dtype=inner,
            **({"output_padding": node["output_padding"]} if transposed else {}),
        )
    )
    if node["bias"] is not None:
        channels = relax.op.reshape(node.cast(node["bias"], inner), (1, -1, *[1] * len(letters)))
        result = node.emit(relax.op.add(result, channels))
    return node.cast(result, node.dtype)


def _cat(node: Node) -> Any:
    """Convert a concatenation, without the empty tensors of one dimension with which caches of decoders begin."""
    parts = [node.cast(part, node.dtype) for part in node["tensors"]]
    some = [part for part in parts if [int(extent) for extent in part.ty.shape if is_known(extent)] != [0]]
    return relax.op.concat(some or parts, axis=node["dim"])


def _histogram(node: Node) -> Any:
    """Counts of elements in `bins` equal parts of an interval, the last of which has both its ends."""
    data, bins, low, high = (node[name] for name in ("self", "bins", "min", "max"))
    if low == high:
        raise ValueError("Unsupported operator histc, as its interval depends on its input")
    flat = node.emit(relax.op.reshape(data, [-1]))

    def counts(values: te.Tensor) -> te.Tensor:
        each = te.reduce_axis((0, values.shape[0]), "i")

        def count(part: Any) -> Any:
            value = values[each]
            place = te.floor((value - low) * bins / (high - low)).astype("int64")
            inside = tirx.all(value >= low, value <= high, tirx.min(place, bins - 1) == part.astype("int64"))
            return te.sum(tirx.Select(inside, tirx.const(1, values.dtype), tirx.const(0, values.dtype)), axis=each)

        return te.compute((bins,), count, name="histogram")

    return node.compute(counts, flat)


def _grouped_product(node: Node) -> Any:
    """Products of groups of rows, each with a matrix of its own, of mixtures of experts in `transformers`.

    From rows (R, K), matrices (G, K, N) and the ends of groups (G,), ascending, to (R, N). Rows behind the last group
    are zeros.
    """
    rows, matrices, ends = list(node.arguments.values())[:3]
    inner = wide(node.dtype)

    def product(rows: te.Tensor, matrices: te.Tensor, ends: te.Tensor) -> te.Tensor:
        groups = int(matrices.shape[0])
        each = te.reduce_axis((0, groups), "g")
        group = te.compute(
            (rows.shape[0],),
            lambda row: te.sum(tirx.Select(ends[each] <= row.astype(ends.dtype), 1, 0), axis=each),
            name="group",
        )
        k = te.reduce_axis((0, rows.shape[1]), "k")

        def element(row: Any, column: Any) -> Any:
            matrix = tirx.min(group[row], groups - 1)
            return te.sum(rows[row, k].astype(inner) * matrices[matrix, k, column].astype(inner), axis=k)

        sums = te.compute((rows.shape[0], matrices.shape[2]), element, name="grouped_matmul")
        return te.compute(
            sums.shape,
            lambda row, column: tirx.Select(
                group[row] < groups, sums[row, column].astype(rows.dtype), tirx.const(0, rows.dtype)
            ),
            name="within_groups",
        )

    return node.compute(product, rows, matrices, ends)


def _pad(node: Node) -> Any:
    """Widths are from the last axis to the first; the value is rounded as the dtype of the tensor is."""
    data, widths = node["self"], [int(width) for width in node["pad"]]
    if "float" in node.dtype or not widths:
        return node.usual()
    pairs = [widths[place : place + 2] for place in range(0, len(widths), 2)]
    outer = [0, 0] * (len(data.ty.shape) - len(pairs))
    value = (bool if node.dtype == "bool" else int)(node["value"])
    return relax.op.nn.pad(data, [*outer, *(width for pair in reversed(pairs) for width in pair)], "constant", value)


def _arange(node: Node) -> Any:
    """Convert a range. Of one whose step is negative, TVM counts the elements wrongly."""
    start, end, step = node["start"], node["end"], node["step"]
    if not isinstance(step, int | float) or step > 0:
        return node.usual()
    if isinstance(start, int | float) and isinstance(end, int | float):
        return relax.const(torch.arange(start, end, step, dtype=node.result.dtype).numpy(), node.dtype)
    count = tirx.floordiv(start - end - step - 1, -step)
    return node.compute(
        lambda: te.compute((count,), lambda place: tirx.Cast(node.dtype, start + place * step), name="arange")
    )


CONVERTERS: dict[str, Converter] = {
    "addmm.default": _addmm,
    "arange.start_step": _arange,
    "bmm.default": _product,
    "cat.default": _cat,
    "constant_pad_nd.default": _pad,
    "convolution.default": _convolution,
    "grouped_mm_fallback.default": _grouped_product,
    "histc.default": _histogram,
    "mm.default": _product,
}
