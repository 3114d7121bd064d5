"""Exact convolutions of bytes in int32 with the channels last: as `conv_direct`, two products a lane (`maddwd`).

The padded image is made in int16. Its channels are read in pairs, whose bytes are neighbours in the packed kernel. An
odd number of channels is padded, and then the image is copied for each tap (im2col): TVM pads no sum with strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule

from loopwright.codegen.cpu import maddwd
from loopwright.codegen.rules.analysis.conv_tile import ConvTile
from loopwright.codegen.rules.analysis.convolution import Convolution, is_simple
from loopwright.codegen.rules.analysis.product_tile import WIDENED_LOADS
from loopwright.codegen.rules.analysis.program import AnalysedProgram, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import divisors, fuse, inline, parallelize, vectorize
from loopwright.codegen.weights.packed_weight import PACKS

_PIXELS, _CHANNELS = 0, 1
"""Which axis varies slowest over the tasks."""
_FIRST, _ONCE = 2, 3
"""All panels of the kernel are packed before the convolution; those of a weight once, before all calls."""
_MOST_ROWS, _MOST_VECTORS = 14, 4
_TASKS = 4
"""Tasks for each thread in the seeds, if there are as many. Not tuned."""
_SEED_TILES = 3


@dataclass(frozen=True)
class _ByteConvolution:
    """A convolution whose image has its channels last.

    ``depth`` is the position of the axis over these channels among the reduction axes, ``kernel_depth`` that of the
    kernel's dimension over them, and ``lanes`` the length of the longest vectors of which the result's channels are a
    whole number.
    """

    whole: Convolution
    depth: int
    kernel_depth: int
    intrinsic: str
    lanes: int

    @property
    def is_odd(self) -> bool:
        """Whether a channel is missing from the last pair."""
        return self.whole.block.reduced[self.depth][1] % maddwd.GROUP != 0

    @staticmethod
    def of(program: AnalysedProgram, machine: MachineLimits) -> _ByteConvolution | None:
        """Return the convolution that is the function; None if it is of another form, or the machine lacks vpmaddwd."""
        whole = Convolution.of(program, "int32")
        if whole is None or not machine.has_maddwd or whole.phases or not whole.other_axes:
            return None
        if not whole.channels_last or whole.group != whole.channels or not is_simple(program, whole):
            return None
        image = program.producer(whole.image.source)
        if any(image is None or name != image.name for name in whole.prepared):
            return None
        depth = next((n for n, (axis, _) in enumerate(whole.block.reduced) if is_var(whole.image.indices[-1], axis)), 0)
        axis, _ = whole.block.reduced[depth]
        in_kernel = next((n for n, index in enumerate(whole.kernel.indices) if is_var(index, axis)), None)
        if in_kernel is None or not is_var(whole.image.indices[-1], axis):
            return None
        lanes = machine.lanes if whole.channels % machine.lanes == 0 else 8
        name = maddwd.intrinsic(str(whole.image.source.dtype), str(whole.kernel.source.dtype), lanes)
        return None if name is None else _ByteConvolution(whole, depth, in_kernel, name, lanes)

    @staticmethod
    def required(program: AnalysedProgram, machine: MachineLimits) -> _ByteConvolution:
        """Return the convolution of a function that is known to be one."""
        convolution = _ByteConvolution.of(program, machine)
        assert convolution is not None, "the rule has no knobs for this function"
        return convolution

    def tiles(self, machine: MachineLimits) -> list[ConvTile]:
        """Return the tiles that fit the registers and divide lines and channels, those that load least first."""
        sizes = [
            ConvTile(rows, vectors, self.lanes)
            for rows in divisors(self.whole.extent(self.whole.pixels[-1]), _MOST_ROWS)
            for vectors in range(1, _MOST_VECTORS + 1)
            if self.whole.channels % (vectors * self.lanes) == 0
        ]
        # A register is for products that are yet to be added.
        fitting = [tile for tile in sizes if tile.registers < machine.registers]
        left, right = WIDENED_LOADS
        return sorted(fitting, key=lambda tile: left / tile.vectors + right / tile.rows)

    def lines(self, tile: ConvTile, machine: MachineLimits) -> int:
        """Return the most lines of a task with which each thread has some tasks."""
        others = math.prod(self.whole.extent(n) for n in self.whole.other_axes)
        tasks = others * (self.whole.channels // tile.width)
        fitting = [n for n in divisors(self.whole.lines) if tasks // n >= _TASKS * machine.threads]
        return max(fitting, default=1)


class ConvMaddwd:
    name = "conv_maddwd"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        convolution = _ByteConvolution.of(program, machine)
        sizes = convolution.tiles(machine) if convolution else []
        if convolution is None or not sizes:
            return ()
        return (
            Knob("rows", tuple(sorted({tile.rows for tile in sizes}))),
            Knob("vectors", tuple(sorted({tile.vectors for tile in sizes}))),
            Knob("outer", (_PIXELS, _CHANNELS)),
            Knob("lines", divisors(convolution.whole.lines)),
            Knob("pack", (_ONCE if convolution.whole.kernel_is_weight else _FIRST,)),
            Knob("unroll", (1, 2, 4)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        convolution = _ByteConvolution.required(program, machine)
        pack = _ONCE if convolution.whole.kernel_is_weight else _FIRST
        for tile in convolution.tiles(machine)[:_SEED_TILES]:
            lines = convolution.lines(tile, machine)
            for outer in (_CHANNELS, _PIXELS):
                values = {"rows": tile.rows, "vectors": tile.vectors, "outer": outer, "lines": lines}
                yield {**values, "pack": pack, "unroll": 2}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        convolution = _ByteConvolution.required(program, machine)
        tile = ConvTile(values["rows"], values["vectors"], convolution.lanes)
        if tile.registers >= machine.registers:
            raise RuleRefused("the tile has more vectors than the processor has registers")
        maddwd.register(convolution.intrinsic)
        image = program.producer(convolution.whole.image.source)
        last = inline(schedule, program, frozenset({image.name} if image else ()))[-1].name
        made = schedule.get_sblock(image.name) if image else None
        if convolution.is_odd:
            wide, kernel = _pad(schedule, convolution, made)
        else:
            wide, kernel = _copy(schedule, convolution.whole, made)
        if str(convolution.whole.image.source.dtype) != maddwd.WIDE:
            schedule.unsafe_set_dtype(wide, 0, maddwd.WIDE)
        # LLVM makes vectors of the inner loop.
        parallelize(schedule, fuse(schedule, schedule.get_loops(wide)[:-1]))
        _pack(schedule, convolution, tile, kernel)
        _schedule(schedule, convolution, tile, values, last, kernel)


def _copy(sch: Schedule, convolution: Convolution, made: Any) -> tuple[Any, Any]:
    """Return the block that makes the image, or else a copy, and a copy of the kernel."""
    block = sch.get_sblock(convolution.block.name)
    kernel = sch.cache_read(block, convolution.kernel_index, "global")
    return made or sch.cache_read(block, 1 - convolution.kernel_index, "global"), kernel


def _pad(sch: Schedule, convolution: _ByteConvolution, made: Any) -> tuple[Any, Any]:
    """Pad the image's channels with one of zeros. Returns the copies of the image, for each tap, and of the kernel."""
    whole = convolution.whole
    block = sch.get_sblock(whole.block.name)
    if made is not None:
        parallelize(sch, fuse(sch, sch.get_loops(made)[:-1]))
    taps = sch.reindex(block, ("read", 1 - whole.kernel_index))
    pads = [1] * (len(whole.block.spatial) + len(whole.block.reduced))
    pads[len(whole.block.spatial) + convolution.depth] = maddwd.GROUP
    sch.pad_einsum(block, pads)
    sch.compute_inline(taps)
    name = f"{whole.kernel.source.name}_pad"
    copies = {str(sch.get(copy).name_hint): copy for copy in sch.get_producers(block)}
    kernel = copies.pop(name)
    [image] = copies.values()
    return image, kernel


def _schedule(
    sch: Schedule, convolution: _ByteConvolution, tile: ConvTile, values: Knobs, last: str, packed: Any
) -> None:
    whole = convolution.whole
    block = sch.get_sblock(whole.block.name)
    write = sch.cache_write(block, 0, "global") if last == whole.block.name else sch.get_sblock(last)
    loops = sch.get_loops(block)
    taps = loops[len(whole.block.spatial) :]
    depth = taps.pop(convolution.depth)
    *others, line = [loops[n] for n in whole.other_axes]
    channels, vector, lane = sch.split(loops[whole.channel], [None, tile.vectors, tile.lanes])
    pixels, row = sch.split(loops[whole.pixels[-1]], [None, tile.rows])
    unroll = math.gcd(values["unroll"], int(sch.get(depth).extent) // maddwd.GROUP)
    step, pairs, pair = sch.split(depth, [None, unroll, maddwd.GROUP])
    line, within = sch.split(line, [None, values["lines"]])
    tasks = [channels, *others, line] if values["outer"] == _CHANNELS else [*others, line, channels]
    sch.reorder(*tasks, within, pixels, *taps, step, pairs, row, vector, lane, pair)
    sch.reverse_compute_at(write, pixels)
    parallelize(sch, fuse(sch, tasks))
    parallelize(sch, fuse(sch, sch.get_loops(packed)[:-2]))
    if values["pack"] == _ONCE:
        sch.annotate(packed, PACKS, True)
    for loop in (pairs, row, vector):
        sch.unroll(loop)
    init = sch.decompose_reduction(block, taps[0])
    sch.vectorize(sch.get_loops(init)[-1])
    sch.tensorize(lane, convolution.intrinsic)
    vectorize(sch, str(sch.get(write).name_hint), sch.get_loops(write)[-1], tile.lanes)


def _pack(sch: Schedule, convolution: _ByteConvolution, tile: ConvTile, copy: Any) -> None:
    """Let a copy of the kernel have panels ``[channels / width, …, depth / 2, width, 2]``."""
    whole, depth = convolution.whole, convolution.kernel_depth
    channel = whole.kernel_dimension
    others = [n for n in range(len(whole.kernel.indices)) if n not in (channel, depth)]

    def panels(*i: Any) -> list[Any]:
        inner = [i[depth] // maddwd.GROUP, i[channel] % tile.width, i[depth] % maddwd.GROUP]
        return [i[channel] // tile.width, *(i[n] for n in others), *inner]

    sch.transform_layout(copy, ("write", 0), panels)
    loops = sch.get_loops(copy)
    panel, lane = sch.split(loops[channel], [None, tile.width])
    step, pair = sch.split(loops[depth], [None, maddwd.GROUP])
    sch.reorder(panel, *(loops[n] for n in others), step, lane, pair)
