"""Quantisation as one block: TVM's own legalisation casts NaN, which a processor turns into any integer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tirx

from loopwright.codegen.graph.rewriting import scalar_of, shape_of
from loopwright.codegen.rounding import whole


def _quantize(builder: Any, call: Any) -> Any:
    """Legalise the integers next to the quotients of numbers by a scale: of two the even one, the least for NaN."""
    dtype, axis = str(call.attrs.out_dtype), int(call.attrs.axis)
    if "int" not in dtype:
        return call.op.get_attr("FLegalize")(builder, call)
    # A zero point of 0 is an argument as any other: of limits that it knows, LLVM makes masks.
    numbers = [scalar_of(call.args[1]), None]
    shapes = [shape_of(operand) for operand in call.args[1:]]
    is_one = [shape is not None and math.prod(shape) == 1 for shape in shapes]
    operands = [operand for operand, number in zip(call.args[1:], numbers, strict=True) if number is None]

    def quantize(data: te.Tensor, *tensors: te.Tensor) -> te.Tensor:
        def element(*place: Any) -> Any:
            stored = iter(tensors)

            def parameter(which: int) -> Any:
                number = numbers[which]
                if number is not None:
                    return tirx.const(number, "float32")
                tensor = next(stored)
                index: Sequence[Any] = [0] * len(tensor.shape) if is_one[which] else [place[axis]]
                return tensor(*index).astype("float32")

            scale, zero = parameter(0), parameter(1)
            value = data(*place).astype("float32")
            return whole(value if numbers[0] == 1 else value / scale, zero, dtype).astype(dtype)

        return te.compute(data.shape, element, name="quantize")

    return builder.call_te(quantize, call.args[0], *operands, primfunc_name_hint="quantize")


LEGALIZATIONS = {"relax.quantize": _quantize}
