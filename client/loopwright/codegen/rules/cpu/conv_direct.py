"""Convolutions: a tile of pixels and channels stays in vector registers while the whole sum runs over it.

The vectors run along the last axis of the result: the channels (NHWC), each step of the sum multiplying vectors of the
kernel with elements of the image, or the pixels of a line (NCHW), vectors of the image with elements of the kernel. The
other axis of the tile is the other one of the two. The padded image is made before. The kernel may be packed into
panels: in each call, or once before all calls if it is a weight. What follows the convolution is computed on the tile
while it is in the first cache. (Georganas et al., Anatomy of high-performance deep learning convolutions on SIMD
architectures, SC 2018.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.conv_tile import ConvTile, cycles, padded_channels, tiles
from loopwright.codegen.rules.analysis.convolution import Convolution, is_simple
from loopwright.codegen.rules.analysis.program import AnalysedProgram
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
"""Which axis varies slowest over the tasks. A thread takes a contiguous part of the tasks."""
_IN_PLACE, _BY_TASK, _FIRST, _ONCE = 0, 1, 2, 3
"""The kernel: read where it is; a panel packed by the task that uses it; all panels packed before the convolution; a
weight's panels packed once, before all calls."""
_TASK_OVERHEAD = 500
"""Cycles for a task beside its tiles. Not tuned."""
_SEED_TILES = 3
"""Tiles of different widths to measure first."""


class ConvDirect:
    name = "conv_direct"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        convolution = Convolution.of(program)
        if convolution is None or not is_simple(program, convolution):
            return ()
        sizes = tiles(convolution, machine)
        if not sizes:
            return ()
        return (
            Knob("rows", tuple(sorted({tile.rows for tile in sizes}))),
            Knob("width", tuple(sorted({tile.width for tile in sizes}))),
            Knob("outer", (_PIXELS, _CHANNELS)),
            Knob("lines", divisors(convolution.lines)),
            # In a model, a weight comes from memory: panels are read in order, whatever a race with a warm cache says.
            Knob("pack", (_ONCE,) if _packs_once(convolution, machine) else (_IN_PLACE, _BY_TASK, _FIRST)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        convolution = Convolution.of(program)
        assert convolution is not None, "the rule has no knobs for this function"
        return _seeds(convolution, machine)

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        convolution = Convolution.of(program)
        assert convolution is not None, "the rule has no knobs for this function"
        tile = ConvTile.of(convolution, machine, values["rows"], values["width"])
        if tile.registers > machine.registers:
            raise RuleRefused("the tile has more vectors than the processor has registers")
        if values["pack"] == _BY_TASK and values["outer"] == _PIXELS:
            raise RuleRefused("a panel of the kernel would be packed again for each line of pixels")
        if values["pack"] == _IN_PLACE and not convolution.kernel_is_contiguous:
            raise RuleRefused("the kernel's channels are not contiguous")
        last = inline(schedule, program, frozenset(convolution.prepared))[-1].name
        for name in convolution.prepared:
            # LLVM makes vectors of the inner loop. TVM would compute vectors with conditions one element after another.
            parallelize(schedule, fuse(schedule, schedule.get_loops(schedule.get_sblock(name))[:-1]))
        padding = padded_channels(convolution, machine)
        if padding > convolution.channels:
            last = _pad_channels(schedule, convolution, padding, last)
        _schedule(schedule, convolution, tile, values, last)


def _packs_once(convolution: Convolution, machine: MachineLimits) -> bool:
    """Return whether the kernel may be packed before all calls; one that is padded first is not read by the packing."""
    return convolution.kernel_is_weight and padded_channels(convolution, machine) == convolution.channels


def _schedule(sch: Schedule, convolution: Convolution, tile: ConvTile, values: Knobs, last: str) -> None:
    block = sch.get_sblock(convolution.block.name)
    if convolution.phases:
        _interleave(sch, convolution)
    packed = _packed(sch, convolution, tile) if values["pack"] != _IN_PLACE else None
    write = sch.cache_write(block, 0, "global") if last == convolution.block.name else sch.get_sblock(last)
    loops = sch.get_loops(block)
    reduced = loops[len(convolution.block.spatial) :]
    *others, line = [loops[n] for n in convolution.other_axes] or [None]
    channel, pixel = loops[convolution.channel], loops[convolution.pixels[-1]]
    if convolution.channels_last:
        channels, vector, lane = sch.split(channel, [None, tile.vectors, tile.lanes])
        pixels, row = sch.split(pixel, [None, tile.rows])
    else:
        channels, row = sch.split(channel, [None, tile.rows])
        pixels, lane = sch.split(pixel, [None, tile.lanes])
        pixels, vector = sch.split(pixels, [None, tile.vectors])
    inner = []
    if line is not None:
        line, within = sch.split(line, [None, values["lines"]])
        others, inner = [*others, line], [within]
    tasks = [channels, *others] if values["outer"] == _CHANNELS else [*others, channels]
    phases = [loops[n] for n in convolution.phases]
    sch.reorder(*tasks, *inner, pixels, *phases, *reduced, row, vector, lane)
    sch.reverse_compute_at(write, pixels)
    task = channels if values["pack"] == _BY_TASK else fuse(sch, tasks)
    parallelize(sch, task)
    if packed is not None:
        _pack(sch, packed, task if values["pack"] == _BY_TASK else None, tile)
    if values["pack"] == _ONCE:
        sch.annotate(packed, PACKS, True)
    sch.vectorize(lane)
    sch.unroll(row)
    sch.unroll(vector)
    separate_partial_tiles(sch, pixels)
    sch.decompose_reduction(block, reduced[0])
    vectorize(sch, str(sch.get(write).name_hint), sch.get_loops(write)[-1], tile.lanes)


def _pad_channels(sch: Schedule, convolution: Convolution, channels: int, last: str) -> str:
    """Pad the channels of the kernel and of the sums with zeros. Returns the name of the block that writes the result.

    TVM pads blocks whose indices are variables, so the image is given such indices and inlined again.
    """
    block = sch.get_sblock(convolution.block.name)
    image = sch.reindex(block, ("read", 1 - convolution.kernel_index))
    pads = [1] * (len(convolution.block.spatial) + len(convolution.block.reduced))
    pads[convolution.channel] = channels
    sch.pad_einsum(block, pads)
    sch.compute_inline(image)
    [kernel] = [b for b in sch.get_producers(block) if str(sch.get(b).name_hint) not in convolution.prepared]
    parallelize(sch, fuse(sch, sch.get_loops(kernel)[:-1]))
    [copy] = sch.get_consumers(block)
    if last == convolution.block.name:
        return str(sch.get(copy).name_hint)
    sch.compute_inline(copy)
    return last


def _interleave(sch: Schedule, convolution: Convolution) -> None:
    """Let the sums be stored in the order of the result's pixels instead of phase by phase."""
    pixels, phases = convolution.pixels[1:], convolution.phases
    extents = [convolution.extent(n) for n in phases]

    def interleaved(*i: Any) -> list[Any]:
        positions = [i[n] * extent + i[phase] for n, phase, extent in zip(pixels, phases, extents, strict=True)]
        return [i[0], *positions, i[convolution.channel]]

    sch.transform_layout(sch.get_sblock(convolution.block.name), ("write", 0), interleaved)


def _packed(sch: Schedule, convolution: Convolution, tile: ConvTile) -> Any:
    """Copy the kernel into panels ``[channels / size, …, size]`` of the channels of a tile."""
    size = tile.width if convolution.channels_last else tile.rows
    place = convolution.kernel_dimension

    def panels(*i: Any) -> list[Any]:
        return [i[place] // size, *i[:place], *i[place + 1 :], i[place] % size]

    copy = sch.cache_read(sch.get_sblock(convolution.block.name), convolution.kernel_index, "global")
    sch.transform_layout(copy, ("write", 0), panels)
    loops = sch.get_loops(copy)
    outer, inner = sch.split(loops[place], [None, size])
    sch.reorder(outer, *loops[:place], *loops[place + 1 :], inner)
    return copy


def _pack(sch: Schedule, copy: Any, task: Any, tile: ConvTile) -> None:
    if task is not None:
        sch.compute_at(copy, task)
    else:
        parallelize(sch, fuse(sch, sch.get_loops(copy)[:2]))
    inner = sch.get_loops(copy)[-1]
    if int(sch.get(inner).extent) % tile.lanes == 0:
        sch.vectorize(sch.split(inner, [None, tile.lanes])[1])


def _seeds(convolution: Convolution, machine: MachineLimits) -> Iterable[Knobs]:
    """Return the tiles that should take the fewest cycles, first with the kernel as it is, then in other orders."""
    best: dict[int, ConvTile] = {}
    for tile in tiles(convolution, machine):
        best.setdefault(tile.width, tile)
    choices = [*best.values()][:_SEED_TILES]
    place = _IN_PLACE if convolution.kernel_is_contiguous else _FIRST
    if _packs_once(convolution, machine):
        place = _ONCE
    orders = [(tile, _PIXELS, place) for tile in choices] + [(choices[0], _CHANNELS, place)]
    if convolution.channels_last and place != _ONCE:
        orders.append((choices[0], _CHANNELS, _BY_TASK))
    for tile, outer, pack in orders:
        lines = _best_lines(convolution, tile, machine, pack)
        yield {"rows": tile.rows, "width": tile.width, "outer": outer, "lines": lines, "pack": pack}


def _best_lines(convolution: Convolution, tile: ConvTile, machine: MachineLimits, pack: int) -> int:
    """Return the smallest number of lines in a task with which the threads finish early and together."""
    panels = padded_channels(convolution, machine) // (tile.width if convolution.channels_last else tile.rows)
    others = math.prod(convolution.extent(n) for n in convolution.other_axes[:-1])
    work = cycles(convolution, tile, machine) * others * convolution.lines
    costs = {}
    for lines in divisors(convolution.lines):
        tasks = panels * (1 if pack == _BY_TASK else others * convolution.lines // lines)
        costs[lines] = math.ceil(tasks / machine.threads) * (work / tasks + _TASK_OVERHEAD)
    return next(lines for lines, cost in costs.items() if cost < 1.02 * min(costs.values()))
