"""Transposed convolutions by output phase, without the zeros that TVM puts between the elements of their input.

With stride ``s``, the outputs whose coordinates have the same remainder by ``s``, a phase, meet the same taps of the
kernel: those that are ``s`` apart. So the phases, ``s`` along each axis, are convolutions of the input itself with
kernels of ``ceil(k / s)`` taps, of which this makes one reduction, and the last block interleaves them. Inserted zeros
would multiply the work by the number of phases. Along an axis without a stride, taps may be dilated.

A depthwise convolution sums its outputs in their own order: each of its channels is a lane, and has a kernel for each
phase. If ``k`` is no multiple of ``s``, some phases have fewer taps. Their last tap is left out of the sum: a product
with a zero in its place would be NaN if the input is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import OUTPUT_FUSABLE, CallRewriter, constant, dtype_of, rewrite_calls, shape_of


def split_phases(mod: tvm.IRModule) -> tvm.IRModule:
    """Make a function by phases of each transposed convolution that `has_phases`.

    A constant kernel is rearranged here; of any other, the function rearranges it first. Transposed convolutions over
    NHWC that cannot be split are computed over NCHW, as TVM can.
    """
    return rewrite_calls(mod, _Phases)


def split_constant_phases(mod: tvm.IRModule) -> tvm.IRModule:
    """Do so where the kernel is constant."""
    return rewrite_calls(mod, _ConstantPhases)


def has_phases(call: tvm.ir.Call) -> bool:
    """Return whether a transposed convolution can be split: no axis has both a stride and dilated taps."""
    return _described(call) is not None


_LAYOUTS = {"NCW": "IOW", "NCHW": "IOHW", "NHWC": "IOHW", "NCDHW": "IODHW"}
"""Layouts of the kernel by those of the data."""
_NAMES = ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
_LANES = (4, 8)
"""Numbers of outputs are multiples of the former, or else padded to one of the latter. Not tuned."""


@dataclass(frozen=True)
class _Convolution:
    """``data`` is (batch, *extents, channels), and ``kernel`` are its extents alone.

    Each of ``groups`` makes ``outputs`` of ``inputs``. A depthwise convolution has one group here, of as many outputs
    as it has channels and of one input, which is another channel for each output. ``padding`` is that before the
    output's first element, and ``extents`` are those of the output.
    """

    data: tuple[int, ...]
    kernel: tuple[int, ...]
    groups: int
    inputs: int
    outputs: int
    is_depthwise: bool
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    extents: tuple[int, ...]
    is_channels_last: bool

    @property
    def name(self) -> str:
        return f"conv{len(self.kernel)}d_transpose"

    @property
    def taps(self) -> tuple[int, ...]:
        """How many taps of the kernel a phase has, along each axis."""
        return tuple(map(_ceil, self.kernel, self.strides))

    @property
    def starts(self) -> tuple[int, ...]:
        """Where the outputs begin, in steps of the stride."""
        return tuple(before // stride for before, stride in zip(self.padding, self.strides, strict=True))

    @property
    def steps(self) -> tuple[int, ...]:
        """How many outputs a phase has, along each axis."""
        axes = zip(self.extents, self.padding, self.strides, self.starts, strict=True)
        return tuple((extent - 1 + before) // stride + 1 - start for extent, before, stride, start in axes)

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements of the input lie between those of the first tap and of the last."""
        return tuple((count - 1) * step for count, step in zip(self.taps, self.dilation, strict=True))

    @property
    def rearranged(self) -> tuple[int, ...]:
        """The shape of the kernel by phases: (*phases, *taps, inputs, outputs), with outputs of padding."""
        return (*self.strides, *self.taps, self.inputs, self.groups * self.padded_outputs)

    @property
    def padded_outputs(self) -> int:
        """The number of a group's outputs with those that are computed and not read, with which vectors divide them.

        Without padding, 17 outputs took 22 times as long, as no vector divides them (AMD Zen 4, one thread). Several
        groups have none: TVM finds no bounds for a tile of the outputs that are read.
        """
        if self.groups > 1:
            return self.outputs
        multiple = _LANES[0] if self.outputs < _LANES[0] or self.outputs % _LANES[0] == 0 else _LANES[1]
        return _ceil(self.outputs, multiple) * multiple

    @property
    def is_even(self) -> bool:
        """Whether all phases have as many taps."""
        return not any(extent % stride for extent, stride in zip(self.kernel, self.strides, strict=True))

    def tap(self, phases: Sequence[Any], taps: Sequence[Any]) -> list[Any]:
        """Return where the kernel has a tap of a phase, in the order in which the padded data has them."""
        axes = zip(phases, self.strides, self.taps, taps, strict=True)
        return [phase + stride * (count - 1 - tap) for phase, stride, count, tap in axes]

    def has(self, places: Sequence[Any]) -> Any:
        """Return whether the kernel has a tap, as an expression."""
        return tirx.all(*(place < extent for place, extent in zip(places, self.kernel, strict=True)))


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
            primfunc_name_hint=convolution.name,
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
    layout = str(attrs.data_layout)
    if _LAYOUTS.get(layout) != str(attrs.kernel_layout) or (str(attrs.out_layout) or layout) != layout:
        return None
    if None in shapes or len({dtype_of(operand) for operand in call.args}) > 1:
        return None
    strides, dilation, padding = (tuple(map(int, each)) for each in (attrs.strides, attrs.dilation, attrs.padding))
    if any(stride > 1 and step > 1 for stride, step in zip(strides, dilation, strict=True)):
        return None
    data, kernel, result = (shape or () for shape in shapes)
    is_channels_last = layout == "NHWC"
    if not is_channels_last:
        data, result = (data[0], *data[2:], data[1]), (result[0], *result[2:], result[1])
    groups = int(attrs.groups)
    is_depthwise = groups > 1 and groups == data[-1] == result[-1]
    return _Convolution(
        data=data,
        kernel=kernel[2:],
        groups=1 if is_depthwise else groups,
        inputs=data[-1] // groups,
        outputs=result[-1] if is_depthwise else kernel[1],
        is_depthwise=is_depthwise,
        strides=strides,
        dilation=dilation,
        padding=padding[: len(strides)],
        extents=result[1:-1],
        is_channels_last=is_channels_last,
    )


def _compute(convolution: _Convolution, dtype: str) -> Callable[[te.Tensor, te.Tensor], te.Tensor]:
    """Return what computes the convolution, in a dtype, from data and a kernel that is rearranged by phases."""
    batch, outputs = convolution.data[0], convolution.groups * convolution.outputs
    sums = _channel_sums if convolution.is_depthwise else _phase_sums

    def compute(data: te.Tensor, kernel: te.Tensor) -> te.Tensor:
        sum_at = sums(convolution, _padded(data, convolution), kernel, dtype)
        if convolution.is_channels_last:
            shape = (batch, *convolution.extents, outputs)
            return te.compute(shape, lambda n, *i: sum_at(n, i[:-1], i[-1]), name="interleave")
        return te.compute((batch, outputs, *convolution.extents), lambda n, o, *i: sum_at(n, i, o), name="interleave")

    return compute


def _padded(data: te.Tensor, convolution: _Convolution) -> te.Tensor:
    """Return the data with the channels last, and with zeros where taps reach beyond it, and behind its channels."""
    batch, *extents, channels = convolution.data
    before = [reach - start for reach, start in zip(convolution.reach, convolution.starts, strict=True)]
    padded = [count + reach for count, reach in zip(convolution.steps, convolution.reach, strict=True)]
    lanes = convolution.padded_outputs if convolution.is_depthwise else channels

    def element(n: Any, *i: Any) -> Any:
        places, c = [place - zeros for place, zeros in zip(i[:-1], before, strict=True)], i[-1]
        value = data(n, *places, c) if convolution.is_channels_last else data(n, c, *places)
        inside = [tirx.all(place >= 0, place < extent) for place, extent in zip(places, extents, strict=True)]
        if lanes > channels:
            inside.append(c < channels)
        return tirx.if_then_else(tirx.all(*inside), value, tirx.const(0, data.dtype))

    return te.compute((batch, *padded, lanes), element, name="pad_temp")


def _phase_sums(convolution: _Convolution, padded: te.Tensor, kernel: te.Tensor, dtype: str) -> Callable[..., Any]:
    """Return what reads an output from the sums of all phases."""
    rank, taps = len(convolution.kernel), _axes(convolution)
    c = te.reduce_axis((0, convolution.inputs), "rc")

    def product(n: Any, *i: Any) -> Any:
        places, phases, o = i[:rank], i[rank:-1], i[-1]
        channel = c if convolution.groups == 1 else o // convolution.outputs * convolution.inputs + c
        element = padded(n, *_read(convolution, places, taps), channel)
        term = element.astype(dtype) * kernel(*phases, *taps, c, o).astype(dtype)
        return _present(convolution, phases, taps, term, dtype)

    sums = te.compute(
        (convolution.data[0], *convolution.steps, *convolution.strides, convolution.rearranged[-1]),
        lambda *i: te.sum(product(*i), axis=[*taps, c]),
        name=convolution.name,
    )

    def sum_at(n: Any, places: Sequence[Any], o: Any) -> Any:
        return sums(n, *_steps(convolution, places), *_phases(convolution, places), o)

    return sum_at


def _channel_sums(convolution: _Convolution, padded: te.Tensor, kernel: te.Tensor, dtype: str) -> Callable[..., Any]:
    """Return what reads an output from the sums of a depthwise convolution, in the order of its outputs."""
    taps = _axes(convolution)

    def product(n: Any, *i: Any) -> Any:
        places, o = i[:-1], i[-1]
        phases = _phases(convolution, places)
        element = padded(n, *_read(convolution, _steps(convolution, places), taps), o)
        term = element.astype(dtype) * kernel(*phases, *taps, 0, o).astype(dtype)
        return _present(convolution, phases, taps, term, dtype)

    sums = te.compute(
        (convolution.data[0], *convolution.extents, convolution.rearranged[-1]),
        lambda *i: te.sum(product(*i), axis=taps),
        name=convolution.name,
    )
    return lambda n, places, o: sums(n, *places, o)


def _axes(convolution: _Convolution) -> list[Any]:
    return [te.reduce_axis((0, count), f"r{axis}") for axis, count in enumerate(convolution.taps)]


def _read(convolution: _Convolution, places: Sequence[Any], taps: Sequence[Any]) -> list[Any]:
    """Return where the padded data has what a tap multiplies."""
    return [place + step * tap for place, step, tap in zip(places, convolution.dilation, taps, strict=True)]


def _steps(convolution: _Convolution, places: Sequence[Any]) -> list[Any]:
    """Return which of its phase an output is, along each axis."""
    axes = zip(places, convolution.padding, convolution.strides, convolution.starts, strict=True)
    return [(place + before) // stride - start for place, before, stride, start in axes]


def _phases(convolution: _Convolution, places: Sequence[Any]) -> list[Any]:
    axes = zip(places, convolution.padding, convolution.strides, strict=True)
    return [(place + before) % stride for place, before, stride in axes]


def _present(convolution: _Convolution, phases: Sequence[Any], taps: Sequence[Any], term: Any, dtype: str) -> Any:
    """Return a term of the sum; zero if its phase has no such tap."""
    if convolution.is_even:
        return term
    return tirx.Select(convolution.has(convolution.tap(phases, taps)), term, tirx.const(0, dtype))


def _rearranged(weight: te.Tensor, convolution: _Convolution) -> te.Tensor:
    """Return the block that rearranges a kernel by phases."""
    rank = len(convolution.kernel)

    def element(*i: Any) -> Any:
        places, c, o = convolution.tap(i[:rank], i[rank:-2]), i[-2], i[-1]
        channel, output = c, o
        if convolution.is_depthwise:
            channel, output = o, 0
        elif convolution.groups > 1:
            channel, output = o // convolution.outputs * convolution.inputs + c, o % convolution.outputs
        present = tirx.all(convolution.has(places), o < convolution.groups * convolution.outputs)
        return tirx.if_then_else(present, weight(channel, output, *places), tirx.const(0, weight.dtype))

    return te.compute(convolution.rearranged, element, name="rearrange_kernel")


def _rearranged_value(weight: Any, convolution: _Convolution) -> Any:
    groups, inputs, outputs = convolution.groups, convolution.inputs, convolution.outputs
    value = np.zeros((*convolution.rearranged[:-1], groups, convolution.padded_outputs), weight.dtype)
    grouped = weight.reshape(groups, inputs, outputs, *convolution.kernel)
    for place in np.ndindex(*convolution.kernel):
        axes = list(zip(place, convolution.strides, convolution.taps, strict=True))
        phases = (each % stride for each, stride, _ in axes)
        taps = (count - 1 - each // stride for each, stride, count in axes)
        value[(*phases, *taps, ..., slice(outputs))] = grouped[(..., *place)].swapaxes(0, 1)
    return value.reshape(convolution.rearranged)


def _ceil(extent: int, step: int) -> int:
    return math.ceil(extent / step)
