"""Scheduling an exact convolution of bytes with the channels last, by instructions that add several products to a lane.

The image has its channels in groups, whose bytes are neighbours in the packed kernel. Where channels are missing from
the last group they are padded, and then the image is copied for each tap (im2col): TVM pads no sum with strides.

The result's channels are padded to whole vectors, of which the rest is not read. Then a task has all channels: TVM
separates the last vector of a serial loop alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.conv_tile import ConvTile
from loopwright.codegen.rules.analysis.convolution import Convolution, is_simple
from loopwright.codegen.rules.analysis.product_tile import Dot
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import (
    divisors,
    fuse,
    inline,
    parallelize,
    separate_partial_tiles,
    vectorize,
)
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
class ByteConvolution:
    """A convolution whose image has its channels last.

    ``depth`` is the position of the axis over these channels among the reduction axes, ``kernel_depth`` that of the
    kernel's dimension over them, and ``lanes`` the length of the longest vectors of which the result's channels are a
    whole number, or else 8, with padding.
    """

    whole: Convolution
    depth: int
    kernel_depth: int
    lanes: int

    @property
    def operands(self) -> tuple[str, str]:
        """The dtypes of the image and of the kernel."""
        return str(self.whole.image.source.dtype), str(self.whole.kernel.source.dtype)

    @property
    def channels_read(self) -> int:
        return self.whole.block.reduced[self.depth][1]

    @property
    def is_padded(self) -> bool:
        """Whether the result's channels are no whole number of vectors."""
        return self.whole.channels % self.lanes > 0

    @staticmethod
    def of(program: AnalysedProgram, machine: MachineLimits) -> ByteConvolution | None:
        """Return the convolution that is the function; None if it is of another form."""
        whole = Convolution.of(program, "int32")
        if whole is None or whole.phases or not whole.other_axes:
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
        return ByteConvolution(whole, depth, in_kernel, machine.lanes if whole.channels % machine.lanes == 0 else 8)

    @staticmethod
    def required(program: AnalysedProgram, machine: MachineLimits) -> ByteConvolution:
        """Return the convolution of a function that is known to be one."""
        convolution = ByteConvolution.of(program, machine)
        assert convolution is not None, "the rule has no knobs for this function"
        return convolution


def knobs(convolution: ByteConvolution, machine: MachineLimits) -> tuple[Knob, ...]:
    """Return the knobs of a convolution."""
    sizes = _tiles(convolution, machine)
    return (
        Knob("rows", tuple(sorted({tile.rows for tile in sizes}))),
        Knob("vectors", tuple(sorted({tile.vectors for tile in sizes}))),
        Knob("outer", (_PIXELS,) if convolution.is_padded else (_PIXELS, _CHANNELS)),
        Knob("lines", divisors(convolution.whole.lines)),
        Knob("pack", (_ONCE if convolution.whole.kernel_is_weight else _FIRST,)),
        Knob("unroll", (1, 2, 4)),
    )


def seeds(convolution: ByteConvolution, machine: MachineLimits, loads: tuple[float, float]) -> Iterable[Knobs]:
    """Return the tiles that load least; ``loads`` as for `product_tile.seeds`, of the image and of the kernel."""
    pack = _ONCE if convolution.whole.kernel_is_weight else _FIRST
    sizes = _tiles(convolution, machine)
    for tile in sorted(sizes, key=lambda tile: loads[0] / tile.vectors + loads[1] / tile.rows)[:_SEED_TILES]:
        lines = _lines(convolution, tile, machine)
        for outer in (_PIXELS,) if convolution.is_padded else (_CHANNELS, _PIXELS):
            values = {"rows": tile.rows, "vectors": tile.vectors, "outer": outer, "lines": lines}
            yield {**values, "pack": pack, "unroll": 2}


def apply(
    sch: Schedule,
    program: AnalysedProgram,
    convolution: ByteConvolution,
    machine: MachineLimits,
    dot: Dot,
    values: Knobs,
) -> None:
    """Schedule a function with a convolution by an instruction, whose intrinsic is registered."""
    whole = convolution.whole
    tile = ConvTile(values["rows"], values["vectors"], convolution.lanes)
    if tile.registers > machine.registers:
        raise RuleRefused("the tile has more vectors than the processor has registers")
    is_widened = dot.wide not in (None, convolution.operands[0])
    image = program.producer(whole.image.source)
    if image is not None and not is_widened and _is_copy(image):
        image = None
    follows = _before_turn(program)
    kept = frozenset(block.name for block in (image, follows) if block is not None)
    last = inline(sch, program, kept)[-1].name
    made = sch.get_sblock(image.name) if image else None
    block, unpadded = sch.get_sblock(whole.block.name), None
    if convolution.channels_read % dot.group or convolution.is_padded:
        made, kernel, unpadded = _pad(sch, convolution, made, dot.group)
    else:
        kernel = sch.cache_read(block, whole.kernel_index, "global")
    if made is None and is_widened:
        made = sch.cache_read(block, 1 - whole.kernel_index, "global")
    if made is not None:
        if is_widened:
            sch.unsafe_set_dtype(made, 0, dot.wide)
        # LLVM makes vectors of the inner loop.
        parallelize(sch, fuse(sch, sch.get_loops(made)[:-1]))
    _pack(sch, convolution, tile, kernel, dot.group)
    if last == whole.block.name:
        write = sch.cache_write(block, 0, "global") if unpadded is None else unpadded
        on_tile = [str(sch.get(write).name_hint)]
    else:
        if unpadded is not None:
            sch.compute_inline(unpadded)
        on_tile = [last] if follows in (None, whole.block) else [follows.name, last]
    _schedule(sch, convolution, tile, dot, values, on_tile, kernel)


def _before_turn(program: AnalysedProgram) -> Block | None:
    """Return the block whose elements the last block puts in another order; None if it does not."""
    last = program.blocks[-1]
    value = last.store.value
    if not isinstance(value, tvm.ir.TensorLoad) or is_var(value.indices[-1], last.spatial[-1][0]):
        return None
    return program.producer(value.source)


def _is_copy(block: Block) -> bool:
    """Return whether a block moves no element, as one that pads an image by nothing."""
    value = block.store.value
    return isinstance(value, tvm.ir.TensorLoad) and all(map(is_var, value.indices, block.store.indices))


def _tiles(convolution: ByteConvolution, machine: MachineLimits) -> list[ConvTile]:
    """Return the tiles that fit the registers and divide lines and vectors of channels."""
    channels = math.ceil(convolution.whole.channels / convolution.lanes)
    sizes = [
        ConvTile(rows, vectors, convolution.lanes)
        for rows in divisors(convolution.whole.extent(convolution.whole.pixels[-1]), _MOST_ROWS)
        for vectors in divisors(channels, _MOST_VECTORS)
    ]
    return [tile for tile in sizes if tile.registers <= machine.registers]


def _lines(convolution: ByteConvolution, tile: ConvTile, machine: MachineLimits) -> int:
    """Return the most lines of a task with which each thread has some tasks."""
    whole = convolution.whole
    others = math.prod(whole.extent(n) for n in whole.other_axes)
    tasks = others * (1 if convolution.is_padded else whole.channels // tile.width)
    fitting = [n for n in divisors(whole.lines) if tasks // n >= _TASKS * machine.threads]
    return max(fitting, default=1)


def _pad(sch: Schedule, convolution: ByteConvolution, made: Any, group: int) -> tuple[Any, Any, Any]:
    """Pad the channels of the image, of the kernel and of the result with zeros, where some are missing.

    Returns the block that makes the image, for each tap if it is padded, or None; the one that copies the kernel; and
    the one that copies the result without padding, or None.
    """
    whole = convolution.whole
    block = sch.get_sblock(whole.block.name)
    is_deepened = convolution.channels_read % group > 0
    if made is not None and is_deepened:
        parallelize(sch, fuse(sch, sch.get_loops(made)[:-1]))
    taps = sch.reindex(block, ("read", 1 - whole.kernel_index))
    pads = [1] * (len(whole.block.spatial) + len(whole.block.reduced))
    pads[whole.channel], pads[len(whole.block.spatial) + convolution.depth] = convolution.lanes, group
    sch.pad_einsum(block, pads)
    sch.compute_inline(taps)
    name = f"{whole.kernel.source.name}_pad"
    copies = {str(sch.get(copy).name_hint): copy for copy in sch.get_producers(block)}
    kernel = copies.pop(name)
    image = next(iter(copies.values()), None)
    return image, kernel, sch.get_consumers(block)[0] if convolution.is_padded else None


def _schedule(
    sch: Schedule,
    convolution: ByteConvolution,
    tile: ConvTile,
    dot: Dot,
    values: Knobs,
    on_tile: list[str],
    packed: Any,
) -> None:
    """Schedule the convolution, and the blocks that are computed of its sums while a tile of them is at hand."""
    whole = convolution.whole
    block = sch.get_sblock(whole.block.name)
    loops = sch.get_loops(block)
    taps = loops[len(whole.block.spatial) :]
    depth = taps.pop(convolution.depth)
    *others, line = [loops[n] for n in whole.other_axes]
    channels, vector, lane = sch.split(loops[whole.channel], [None, tile.vectors, tile.lanes])
    pixels, row = sch.split(loops[whole.pixels[-1]], [None, tile.rows])
    unroll = math.gcd(values["unroll"], int(sch.get(depth).extent) // dot.group)
    step, groups, group = sch.split(depth, [None, unroll, dot.group])
    line, within = sch.split(line, [None, values["lines"]])
    tasks, inner = [*others, line], [channels]
    if not convolution.is_padded:
        tasks, inner = [channels, *tasks] if values["outer"] == _CHANNELS else [*tasks, channels], []
    sch.reorder(*tasks, *inner, within, pixels, *taps, step, groups, row, vector, lane, group)
    for name in on_tile:
        sch.reverse_compute_at(sch.get_sblock(name), pixels)
    parallelize(sch, fuse(sch, tasks))
    parallelize(sch, fuse(sch, sch.get_loops(packed)[:-2]))
    if values["pack"] == _ONCE:
        sch.annotate(packed, PACKS, True)
    for loop in (groups, row, vector):
        sch.unroll(loop)
    for loop in inner:
        separate_partial_tiles(sch, loop)
    init = sch.decompose_reduction(block, taps[0])
    sch.vectorize(sch.get_loops(init)[-1])
    sch.tensorize(lane, dot.intrinsic)
    first = sch.get_loops(sch.get_sblock(on_tile[0]))[-1]
    if convolution.is_padded:
        sch.vectorize(sch.split(first, [None, tile.lanes])[1])
    else:
        vectorize(sch, on_tile[0], first, tile.lanes)


def _pack(sch: Schedule, convolution: ByteConvolution, tile: ConvTile, copy: Any, group: int) -> None:
    """Let a copy of the kernel have panels ``[channels / width, …, depth / group, width, group]``."""
    whole, depth = convolution.whole, convolution.kernel_depth
    channel = whole.kernel_dimension
    others = [n for n in range(len(whole.kernel.indices)) if n not in (channel, depth)]

    def panels(*i: Any) -> list[Any]:
        inner = [i[depth] // group, i[channel] % tile.width, i[depth] % group]
        return [i[channel] // tile.width, *(i[n] for n in others), *inner]

    sch.transform_layout(copy, ("write", 0), panels)
    loops = sch.get_loops(copy)
    panel, lane = sch.split(loops[channel], [None, tile.width])
    step, within = sch.split(loops[depth], [None, group])
    sch.reorder(panel, *(loops[n] for n in others), step, lane, within)
