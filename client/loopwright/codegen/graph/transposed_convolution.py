"""Transposed convolutions by output phase, without the zeros that TVM puts between the elements of their input.

With stride ``s``, the outputs whose coordinates have the same remainder by ``s``, a phase, meet the same taps of the
kernel: those that are ``s`` apart. So the ``s * s`` phases are convolutions of the input itself with kernels of
``ceil(k / s)`` taps, of which this makes one reduction, and the last block interleaves them. Inserted zeros would
multiply the work by ``s * s``. A line is an image of one row.

If ``k`` is no multiple of ``s``, some phases have fewer taps. Their last tap is left out of the sum: a product with a
zero in its place would be NaN if the input is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import OUTPUT_FUSABLE, CallRewriter, constant, dtype_of, rewrite_calls, shape_of


def split_phases(mod: tvm.IRModule) -> tvm.IRModule:
    """Make a function by phases of each transposed convolution with one group and without dilation.

    A constant kernel is rearranged here; of any other, the function rearranges it first. Transposed convolutions over
    NHWC that cannot be split are computed over NCHW, as TVM can.
    """
    return rewrite_calls(mod, _Phases)


def split_constant_phases(mod: tvm.IRModule) -> tvm.IRModule:
    """Do so where the kernel is constant."""
    return rewrite_calls(mod, _ConstantPhases)


_NAMES = ("nn.conv1d_transpose", "nn.conv2d_transpose")
_LANES = (4, 8)
"""Numbers of outputs are multiples of the former, or else padded to one of the latter. Not tuned."""


@dataclass(frozen=True)
class _Convolution:
    """``data`` is (batch, height, width, channels); ``kernel`` (channels, outputs, height, width)."""

    data: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, int]
    padding: tuple[int, int]
    """At the top and the left."""
    extents: tuple[int, int]
    """Of the output."""
    is_channels_last: bool
    is_line: bool
    """Whether the tensors have no axis for the height, which is 1."""

    @property
    def taps(self) -> tuple[int, int]:
        """How many taps of the kernel a phase has, in either direction."""
        return _ceil(self.kernel[2], self.strides[0]), _ceil(self.kernel[3], self.strides[1])

    @property
    def starts(self) -> tuple[int, int]:
        """Where the outputs begin, in steps of the stride."""
        return self.padding[0] // self.strides[0], self.padding[1] // self.strides[1]

    @property
    def steps(self) -> tuple[int, int]:
        """How many outputs a phase has, in either direction."""
        ends = [
            (extent - 1 + before) // stride + 1
            for extent, before, stride in zip(self.extents, self.padding, self.strides, strict=True)
        ]
        return ends[0] - self.starts[0], ends[1] - self.starts[1]

    @property
    def rearranged(self) -> tuple[int, ...]:
        """The shape of the kernel by phases: (phase, phase, tap, tap, channels, outputs), with outputs of padding."""
        return (*self.strides, *self.taps, self.kernel[0], self.padded_outputs)

    @property
    def padded_outputs(self) -> int:
        """The number of outputs with those that are computed and not read, with which vectors divide them.

        Without padding, 17 outputs took 22 times as long, as no vector divides them (AMD Zen 4, one thread).
        """
        outputs = self.kernel[1]
        multiple = _LANES[0] if outputs < _LANES[0] or outputs % _LANES[0] == 0 else _LANES[1]
        return _ceil(outputs, multiple) * multiple

    @property
    def is_even(self) -> bool:
        """Whether all phases have as many taps."""
        return self.kernel[2] % self.strides[0] == 0 and self.kernel[3] % self.strides[1] == 0

    def tap(self, p: Any, q: Any, i: Any, j: Any) -> tuple[Any, Any]:
        """Return where the kernel has a tap of a phase, in the order in which the padded data has them."""
        return p + self.strides[0] * (self.taps[0] - 1 - i), q + self.strides[1] * (self.taps[1] - 1 - j)

    def rows(self, y: Any) -> tuple[Any, ...]:
        """Return the indices that a tensor has for a row."""
        return () if self.is_line else (y,)

    def has(self, y: Any, x: Any) -> Any:
        """Return whether the kernel has a tap, as an expression."""
        return tirx.all(y < self.kernel[2], x < self.kernel[3])


class _Base(CallRewriter):
    def by_phases(self, call: tvm.ir.Call) -> Any:
        """Return the call by phases; None if it cannot be split."""
        convolution = _described(call)
        if convolution is None:
            return None
        kernel, compute = call.args[1], _compute(convolution, dtype_of(call))
        if isinstance(kernel, tvm.ir.GenericConst):
            kernel = constant(_rearranged_value(kernel.value.numpy(), convolution))
        else:
            inner = compute

            def compute(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
                return inner(data, _rearranged(weight, convolution))

        return self.builder_.call_te(
            compute,
            call.args[0],
            kernel,
            primfunc_name_hint="conv1d_transpose" if convolution.is_line else "conv2d_transpose",
            primfunc_attrs={"op_pattern": OUTPUT_FUSABLE},
        )


@mutator
class _ConstantPhases(_Base):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name not in _NAMES or not isinstance(call.args[1], tvm.ir.GenericConst):
            return call
        split = self.by_phases(call)
        return call if split is None else split


@mutator
class _Phases(_Base):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name not in _NAMES:
            return call
        split = self.by_phases(call)
        return self._channels_first(call) if split is None else split

    def _channels_first(self, call: tvm.ir.Call) -> Any:
        attrs = call.attrs
        if str(attrs.data_layout) != "NHWC":  # among them all lines
            return call
        data = self.emit(relax.op.permute_dims(call.args[0], [0, 3, 1, 2]))
        result = relax.op.nn.conv2d_transpose(
            data,
            call.args[1],
            strides=[int(stride) for stride in attrs.strides],
            padding=[int(extent) for extent in attrs.padding],
            output_padding=[int(extent) for extent in attrs.output_padding],
            dilation=[int(step) for step in attrs.dilation],
            groups=int(attrs.groups),
            kernel_layout=str(attrs.kernel_layout),
            out_dtype=dtype_of(call),
        )
        return relax.op.permute_dims(self.emit(result), [0, 2, 3, 1])


def _described(call: tvm.ir.Call) -> _Convolution | None:
    """Return a transposed convolution in short; None if it cannot be split into phases."""
    attrs, shapes = call.attrs, [shape_of(expr) for expr in (*call.args, call)]
    layouts = {str(attrs.data_layout), str(attrs.out_layout) or str(attrs.data_layout)}
    is_line = layouts == {"NCW"}
    if len(layouts) > 1 or not layouts <= {"NCW", "NCHW", "NHWC"}:
        return None
    if str(attrs.kernel_layout) != ("IOW" if is_line else "IOHW"):
        return None
    if int(attrs.groups) != 1 or any(int(step) != 1 for step in attrs.dilation) or None in shapes:
        return None
    if len({dtype_of(operand) for operand in call.args}) > 1:
        return None
    data, kernel, result = (shape or () for shape in shapes)
    strides, padding = ([int(extent) for extent in extents] for extents in (attrs.strides, attrs.padding))
    if is_line:
        data, kernel, result = ((*shape[:2], 1, shape[2]) for shape in (data, kernel, result))
        strides, padding = [1, *strides], [0, padding[0]]
    is_channels_last = layouts == {"NHWC"}
    if not is_channels_last:
        data, result = (data[0], *data[2:], data[1]), (result[0], *result[2:], result[1])
    return _Convolution(
        data=data,
        kernel=kernel,
        strides=(strides[0], strides[1]),
        padding=(padding[0], padding[1] if len(padding) > 1 else padding[0]),
        extents=(result[1], result[2]),
        is_channels_last=is_channels_last,
        is_line=is_line,
    )


def _compute(convolution: _Convolution, dtype: str) -> Callable[[te.Tensor, te.Tensor], te.Tensor]:
    """Return what computes the convolution, in a dtype, from data and a kernel that is rearranged by phases."""
    batch, height, width, channels = convolution.data
    outputs, taps, starts, steps = convolution.kernel[1], convolution.taps, convolution.starts, convolution.steps
    before = [count - 1 - start for count, start in zip(taps, starts, strict=True)]
    strides, padding = convolution.strides, convolution.padding

    def compute(data: te.Tensor, kernel: te.Tensor) -> te.Tensor:
        def padded_element(n: Any, y: Any, x: Any, c: Any) -> Any:
            y, x = y - before[0], x - before[1]
            rows = convolution.rows(y)
            element = data(n, *rows, x, c) if convolution.is_channels_last else data(n, c, *rows, x)
            inside = tirx.all(y >= 0, y < height, x >= 0, x < width)
            return tirx.if_then_else(inside, element, tirx.const(0, data.dtype))

        padded = te.compute(
            (batch, steps[0] + taps[0] - 1, steps[1] + taps[1] - 1, channels), padded_element, name="pad_temp"
        )
        i = te.reduce_axis((0, taps[0]), "ry")
        j = te.reduce_axis((0, taps[1]), "rx")
        c = te.reduce_axis((0, channels), "rc")

        def product(n: Any, y: Any, x: Any, p: Any, q: Any, o: Any) -> Any:
            term = padded(n, y + i, x + j, c).astype(dtype) * kernel(p, q, i, j, c, o).astype(dtype)
            if convolution.is_even:
                return term
            return tirx.Select(convolution.has(*convolution.tap(p, q, i, j)), term, tirx.const(0, dtype))

        phases = te.compute(
            (batch, *steps, *strides, convolution.padded_outputs),
            lambda *indices: te.sum(product(*indices), axis=[i, j, c]),
            name="conv2d_transpose",
        )

        def interleaved(n: Any, y: Any, x: Any, o: Any) -> Any:
            y, x = y + padding[0], x + padding[1]
            steps_from = (y // strides[0] - starts[0], x // strides[1] - starts[1])
            return phases(n, *steps_from, y % strides[0], x % strides[1], o)

        if convolution.is_channels_last:
            return te.compute((batch, *convolution.extents, outputs), interleaved, name="interleave")
        if convolution.is_line:
            return te.compute(
                (batch, outputs, convolution.extents[1]), lambda n, o, x: interleaved(n, 0, x, o), name="interleave"
            )
        return te.compute(
            (batch, outputs, *convolution.extents), lambda n, o, y, x: interleaved(n, y, x, o), name="interleave"
        )

    return compute


def _rearranged(weight: te.Tensor, convolution: _Convolution) -> te.Tensor:
    """Return the block that rearranges a kernel by phases."""

    def element(p: Any, q: Any, i: Any, j: Any, c: Any, o: Any) -> Any:
        y, x = convolution.tap(p, q, i, j)
        present = tirx.all(convolution.has(y, x), o < convolution.kernel[1])
        return tirx.if_then_else(present, weight(c, o, *convolution.rows(y), x), tirx.const(0, weight.dtype))

    return te.compute(convolution.rearranged, element, name="rearrange_kernel")


def _rearranged_value(weight: Any, convolution: _Convolution) -> Any:
    value, weight = np.zeros(convolution.rearranged, weight.dtype), weight.reshape(convolution.kernel)
    taps, strides, kernel = convolution.taps, convolution.strides, convolution.kernel
    for y in range(kernel[2]):
        for x in range(kernel[3]):
            i, j = taps[0] - 1 - y // strides[0], taps[1] - 1 - x // strides[1]
            value[y % strides[0], x % strides[1], i, j, :, : kernel[1]] = weight[:, :, y, x]
    return value


def _ceil(extent: int, step: int) -> int:
    return math.ceil(extent / step)
