"""Operators of PyTorch in Relax that TVM's importer lacks, or translates to something else.

It gives products and convolutions results of float32 whatever their arguments are: a bias of another dtype cannot be
added then, and float64 loses digits. Here float16 and bfloat16 are summed in float32 and rounded once, as PyTorch does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WIDE = {"float16": "float32", "bfloat16": "float32"}
_LETTERS = {3: "W", 4: "HW", 5: "DHW"}
"""Of the dimensions behind batch and channels, by the rank of the input."""

Converter = Callable[[Any, Any], Any]
"""From a node of the graph and TVM's importer to the ``relax.Var`` of the node's result."""


def converters() -> dict[str, Converter]:
    """Return the converters by operator, as ``from_exported_program`` takes them."""
    return {
        "addmm.default": _addmm,
        "bmm.default": _product,
        "cat.default": _cat,
        "convolution.default": _convolution,
        "div.Tensor": _div,
        "div.Tensor_mode": _div,
        "grouped_mm_fallback.default": _grouped_product,
        "histc.default": _histogram,
        "index.Tensor": _index,
        "mm.default": _product,
        "select.int": _select,
    }


def _product(node: Any, importer: Any) -> Any:
    from tvm import relax

    left, right = importer.retrieve_args(node)
    return _rounded(importer, relax.op.matmul(left, right, out_dtype=_wide(left)), left)


def _addmm(node: Any, importer: Any) -> Any:
    from tvm import relax

    bias, left, right = importer.retrieve_args(node)
    wide = _wide(left)
    result = importer.block_builder.emit(relax.op.matmul(left, right, out_dtype=wide))
    alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)
    if alpha != 1:
        result = importer.block_builder.emit(relax.op.multiply(result, relax.const(alpha, wide)))
    if beta != 0:  # else PyTorch does not read the bias, which may be NaN
        bias = _widened(importer, bias, wide)
        if beta != 1:
            bias = importer.block_builder.emit(relax.op.multiply(bias, relax.const(beta, wide)))
        result = importer.block_builder.emit(relax.op.add(bias, result))
    return _rounded(importer, result, left)


def _convolution(node: Any, importer: Any) -> Any:
    from tvm import relax

    data, weight, bias, strides, padding, dilation, transposed, output_padding, groups = importer.retrieve_args(node)
    letters = _LETTERS[len(data.ty.shape)]
    name = f"conv{len(letters)}d" + ("_transpose" if transposed else "")
    operator = getattr(relax.op.nn, name, None)
    if operator is None:
        raise ValueError(f"Unsupported operator {name}")
    wide = _wide(data)
    result = importer.block_builder.emit(
        operator(
            data,
            weight,
            strides=strides,
            padding=padding,
            dilation=dilation,
            groups=groups,
            data_layout=f"NC{letters}",
            kernel_layout=f"{'IO' if transposed else 'OI'}{letters}",
            out_dtype=wide,
            **({"output_padding": output_padding} if transposed else {}),
        )
    )
    if bias is not None:
        channels = relax.op.reshape(_widened(importer, bias, wide), (1, -1, *[1] * len(letters)))
        result = importer.block_builder.emit(relax.op.add(result, channels))
    return _rounded(importer, result, data)


def _cat(node: Any, importer: Any) -> Any:
    """Convert a concatenation, without the empty tensors of one dimension with which caches of decoders begin."""
    from tvm import relax

    parts, axis = [*importer.retrieve_args(node), node.kwargs.get("dim", 0)][:2]
    some = [part for part in parts if [int(extent) for extent in part.ty.shape if _is_known(extent)] != [0]]
    return importer.block_builder.emit(relax.op.concat(some or parts, axis=axis))


def _div(node: Any, importer: Any) -> Any:
    """In the dtype of the result, which a number divides as well; without a rounding mode that is never an integer."""
    from tvm import relax

    dtype = str(node.meta["val"].dtype).removeprefix("torch.")
    left, right = (
        _widened(importer, operand, dtype) if isinstance(operand, relax.Expr) else relax.const(operand, dtype)
        for operand in importer.retrieve_args(node)[:2]
    )
    mode = node.kwargs.get("rounding_mode")
    if mode == "floor":
        return importer.block_builder.emit(relax.op.floor_divide(left, right))
    result = importer.block_builder.emit(relax.op.divide(left, right))  # truncates integers
    if mode == "trunc" and "int" not in dtype:
        return importer.block_builder.emit(relax.op.trunc(result))
    return result


def _histogram(node: Any, importer: Any) -> Any:
    """Counts of elements in `bins` equal parts of an interval, the last of which has both its ends."""
    from tvm import relax, te, tirx

    names = ("self", "bins", "min", "max")
    given = {"bins": 100, "min": 0, "max": 0, **dict(zip(names, importer.retrieve_args(node), strict=False))}
    data, bins, low, high = ({**given, **node.kwargs}[name] for name in names)
    if low == high:
        raise ValueError("Unsupported operator histc, as its interval depends on its input")
    flat = importer.block_builder.emit(relax.op.reshape(data, [-1]))

    def counts(values: te.Tensor) -> te.Tensor:
        each = te.reduce_axis((0, values.shape[0]), "i")

        def count(part: Any) -> Any:
            value = values[each]
            place = te.floor((value - low) * bins / (high - low)).astype("int64")
            inside = tirx.all(value >= low, value <= high, tirx.min(place, bins - 1) == part.astype("int64"))
            return te.sum(tirx.Select(inside, tirx.const(1, values.dtype), tirx.const(0, values.dtype)), axis=each)

        return te.compute((bins,), count, name="histogram")

    return importer.block_builder.emit_te(counts, flat, primfunc_name_hint="histogram")


def _select(node: Any, importer: Any) -> Any:
    """Negative indices count from the end."""
    from tvm import relax

    data, axis, index = importer.retrieve_args(node)
    extent = data.ty.shape[axis]
    if index < 0 and not _is_known(extent):
        raise ValueError("Unsupported operator select.int, as it counts from the end of a symbolic extent")
    place = relax.const(index + int(extent) if index < 0 else index, "int64")
    return importer.block_builder.emit(relax.op.take(data, place, axis, mode="clip"))


def _index(node: Any, importer: Any) -> Any:
    """Negative indices count from the end, also those that are computed."""
    from tvm import relax

    data, indices = node.args
    shape, given = importer.env[data].ty.shape, {}
    for axis, index in enumerate(indices):
        known = None if index is None else importer.env[index]
        if known is None or "int" not in str(known.ty.dtype) or not _is_known(shape[axis]):
            continue
        given[index] = known
        zero, extent = (relax.const(value, known.ty.dtype) for value in (0, int(shape[axis])))
        from_end = importer.block_builder.emit(relax.op.add(known, extent))
        is_negative = importer.block_builder.emit(relax.op.less(known, zero))
        importer.env[index] = importer.block_builder.emit(relax.op.where(is_negative, from_end, known))
    try:
        return importer._index_tensor(node)
    finally:
        importer.env.update(given)


def _grouped_product(node: Any, importer: Any) -> Any:
    """Products of groups of rows, each with a matrix of its own, of mixtures of experts in `transformers`.

    From rows (R, K), matrices (G, K, N) and the ends of groups (G,), ascending, to (R, N). Rows behind the last group
    are zeros.
    """
    from tvm import te, tirx

    rows, matrices, ends = importer.retrieve_args(node)
    wide = _wide(rows)

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
            return te.sum(rows[row, k].astype(wide) * matrices[matrix, k, column].astype(wide), axis=k)

        sums = te.compute((rows.shape[0], matrices.shape[2]), element, name="grouped_matmul")
        return te.compute(
            sums.shape,
            lambda row, column: tirx.Select(
                group[row] < groups, sums[row, column].astype(rows.dtype), tirx.const(0, rows.dtype)
            ),
            name="within_groups",
        )

    return importer.block_builder.emit_te(product, rows, matrices, ends, primfunc_name_hint="grouped_matmul")


def _is_known(extent: Any) -> bool:
    return isinstance(extent, int) or hasattr(extent, "value")


def _wide(argument: Any) -> str:
    """Return the dtype of sums."""
    dtype = str(argument.ty.dtype)
    return _WIDE.get(dtype, dtype)


def _widened(importer: Any, argument: Any, dtype: str) -> Any:
    from tvm import relax

    if str(argument.ty.dtype) == dtype:
        return argument
    return importer.block_builder.emit(relax.op.astype(argument, dtype))


def _rounded(importer: Any, result: Any, argument: Any) -> Any:
    """Return a result in the dtype of an argument."""
    from tvm import relax

    dtype = str(argument.ty.dtype)
    return importer.block_builder.emit(result if _wide(argument) == dtype else relax.op.astype(result, dtype))
