"""Products and convolutions: those of halves are summed in float32 and rounded once."""

from __future__ import annotations

from typing import Any

from tvm import relax

from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.node import Converter, Node, dtype_of

_OPTIONS = ("strides", "padding", "output_padding", "dilation", "groups", "data_layout", "kernel_layout", "out_layout")
"""Of Relax's convolutions, beside the dtype of the sums."""


def product(node: Node, left: Any, right: Any) -> Any:
    """Return the matrix product of two tensors."""
    result = node.emit(relax.op.matmul(left, right, out_dtype=wide(left)))
    return node.cast(result, dtype_of(left))


def _matrix_product(node: Node) -> Any:
    return product(node, *node.inputs[:2])


def _general_product(node: Node) -> Any:
    """Convert Gemm. The product has the factor, as in ONNX Runtime; TVM's importer multiplies a matrix."""
    left, right, bias = (*node.inputs[:3], None)[:3]
    dtype, inner = dtype_of(left), wide(left)
    alpha, beta = (float(node.attributes.get(name, 1)) for name in ("alpha", "beta"))
    if "int" in dtype and not (alpha.is_integer() and beta.is_integer()):
        raise ValueError(f"of {dtype} with factors that are fractions; cast the matrices to float32")
    left, right = (
        node.emit(relax.op.permute_dims(each)) if node.attributes.get(name, 0) else each
        for each, name in ((left, "transA"), (right, "transB"))
    )
    result = scaled(node, node.emit(relax.op.matmul(left, right, out_dtype=inner)), alpha)
    if bias is not None:
        result = node.emit(relax.op.add(result, scaled(node, node.cast(bias, inner), beta)))
    return node.cast(result, dtype)


def scaled(node: Node, value: Any, factor: float) -> Any:
    return value if factor == 1 else node.emit(relax.op.multiply(value, relax.const(factor, dtype_of(value))))


def summed_in_float32(convert: Converter) -> Converter:
    """Return the converter of a convolution whose sums, and the bias, are of float32 if its tensors are halves."""

    def converted(node: Node) -> Any:
        data, kernel, bias = (*node.inputs[:3], None)[:3]
        dtype, inner = dtype_of(data), wide(data)
        if dtype == inner:
            return convert(node)
        call = convert(node.of(data, kernel, None))
        options = {name: getattr(call.attrs, name) for name in _OPTIONS if hasattr(call.attrs, name)}
        operator = getattr(relax.op.nn, call.op.name.removeprefix("relax.nn."))
        result = node.emit(operator(*call.args, **options | {"out_dtype": inner}))
        if bias is not None:
            channels = relax.op.reshape(node.cast(bias, inner), [1, -1, *[1] * (len(data.ty.shape) - 2)])
            result = node.emit(relax.op.add(result, channels))
        return node.cast(result, dtype)

    return converted


def _einsum(node: Node) -> Any:
    dtype = dtype_of(node.inputs[0])
    whole = [node.cast(each, wide(each)) for each in node.inputs]
    return node.cast(node.emit(node.as_usual(*whole)), dtype)


CONVERTERS: dict[str, Converter] = {
    "Conv": summed_in_float32(Node.as_usual),
    "Einsum": _einsum,
    "Gemm": _general_product,
    "MatMul": _matrix_product,
}
