"""Convolutions: a tile of pixels and channels stays in vector registers while the whole sum runs over it.

The vectors run along the channels, each step of the sum multiplying vectors of the kernel with elements of the image,
or, if the result has the channels first, along the pixels of a line: vectors of the image with elements of the kernel.
The other axis of the tile is the other one of the two. A result with the channels first is stored across vectors of
channels; lines are often no whole number of vectors, and channels are. An image that is padded or multiplied first is
made by each task, or all of it before. The kernel may be packed into panels: in each call, or once before all calls if
it is a weight. What follows the convolution is computed on the tile while it is in the first cache. (Georganas et al.,
Anatomy of high-performance deep learning convolutions on SIMD architectures, SC 2018.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tvm.s_tir import Schedule
from tvm.tirx import IndexMap

from loopwright.codegen.rules.analysis.columns import conditions
from loopwright.codegen.rules.analysis.conv_tile import ConvTile, cycles, fits, padded_channels, tiles
from loopwright.codegen.rules.analysis.convolution import Convolution, is_simple
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import (
    divisors,
    fetch_ahead,
    fuse,
    inline,
    parallelize,
    separate_partial_tiles,
    vectorize,
)
from loopwright.codegen.weights.packed_weight import PACKS

_PIXELS, _CHANNELS = 0, 1
"""Which axis the elements of a vector are neighbours on; and which varies slowest over the tasks, of which a thread
takes a contiguous part."""
_IN_PLACE, _BY_TASK, _FIRST, _ONCE = 0, 1, 2, 3
"""The kernel: read where it is; a panel packed by the task that uses it; all panels packed before the convolution; a
weight's panels packed once, before all calls."""
_ALL_BEFORE, _LINES = 0, 1
"""An image that other blocks make: all of it before the convolution; or the lines that a task reads, by the task, which
has all channels of its own lines."""
_TASK_OVERHEAD = 500
"""Cycles for a task beside its tiles. Not tuned."""
_MAKING = 8
"""Cycles for a vector of an image that a task makes. With tasks of one line, which make each line three times, a
convolution of 3x3 over 56 x 56 x 64 took 1.04 times as long (AMD Zen 4, one thread)."""
_SPARED_PASS = 1.04
"""By how many more cycles the tasks may make their lines of an image, so that no pass over all of it comes before.
Fitted by eye to 9 convolutions, which took 0.7 to 1.0 times as long with such tasks (AMD Zen 4, one thread)."""
_SEED_TILES = 3
"""Tiles of different widths to measure first."""
_CLOSE = 1.1
"""Tiles that should be slower than the fastest one by no more than this factor: the largest of them is measured, too.
With channels in vectors, 6 x 16 is 6 % faster than 4 x 16 on AMD Zen 4, where `cycles` finds them equal."""

_MOST_COPIES = 64
"""Taps of all phases up to which each is code of its own, or none if its phase lacks it; of volumes half as many. Not
tuned. A volume with 64 is three times as fast with such code, and takes more than ten times as long to compile."""


class ConvDirect:
    name = "conv_direct"
    version = 4

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        convolution = _convolution(program)
        if convolution is None or not is_simple(program, convolution):
            return ()
        machine = machine.for_sums(convolution.block.dtype)
        choices = {lanes: tiles(each, machine) for lanes, each in _orientations(convolution).items()}
        sizes = [tile for each in choices.values() for tile in each]
        if not sizes:
            return ()
        return (
            Knob("rows", tuple(sorted({tile.rows for tile in sizes}))),
            Knob("width", tuple(sorted({tile.width for tile in sizes}))),
            Knob("lanes", tuple(lanes for lanes, each in choices.items() if each)),
            Knob("outer", (_PIXELS, _CHANNELS)),
            Knob("lines", divisors(convolution.lines)),
            # In a model, a weight comes from memory: panels are read in order, whatever a race with a warm cache says.
            Knob("pack", (_ONCE,) if _packs_once(convolution, machine) else (_IN_PLACE, _BY_TASK, _FIRST)),
            Knob("image", (_ALL_BEFORE, _LINES) if _makes_lines(convolution, machine) else (_ALL_BEFORE,)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        convolution = _convolution(program)
        assert convolution is not None, "the rule has no knobs for this function"
        return _seeds(convolution, machine.for_sums(convolution.block.dtype))

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        convolution = _convolution(program)
        assert convolution is not None, "the rule has no knobs for this function"
        machine = machine.for_sums(convolution.block.dtype)
        convolution = _orientations(convolution)[values["lanes"]]
        tile = ConvTile.of(convolution, machine, values["rows"], values["width"])
        if not fits(convolution, machine, tile):
            raise RuleRefused("the tile is none of those for vectors along this axis")
        if tile.registers > machine.registers:
            raise RuleRefused("the tile has more vectors than the processor has registers")
        if values["pack"] == _BY_TASK and values["outer"] == _PIXELS:
            raise RuleRefused("a panel of the kernel would be packed again for each line of pixels")
        if values["pack"] == _IN_PLACE and not convolution.kernel_is_contiguous:
            raise RuleRefused("the kernel's channels are not contiguous")
        if values["image"] == _LINES and (values["outer"] == _CHANNELS or values["pack"] == _BY_TASK):
            raise RuleRefused("a task that makes its lines of the image has all channels")
        last = inline(schedule, program, frozenset(convolution.prepared))[-1].name
        for name in convolution.prepared:
            if values["image"] == _LINES and name == convolution.prepares_image:
                continue
            # LLVM makes vectors of the inner loop. TVM would compute vectors with conditions one element after another.
            parallelize(schedule, fuse(schedule, schedule.get_loops(schedule.get_sblock(name))[:-1]))
        padding = padded_channels(convolution, machine)
        if padding > convolution.channels:
            last = _pad_channels(schedule, convolution, padding, last)
        task = _schedule(schedule, convolution, tile, values, last)
        if values["image"] == _LINES and convolution.prepares_image is not None:
            _make_lines(schedule, program.block(convolution.prepares_image), task, machine)


def _convolution(program: AnalysedProgram) -> Convolution | None:
    """Return the convolution that a function is, with sums of float32 or float64; None if it is none."""
    return Convolution.of(program) or Convolution.of(program, "float64")


def _packs_once(convolution: Convolution, machine: MachineLimits) -> bool:
    """Return whether the kernel may be packed before all calls; one that is padded first is not read by the packing."""
    return convolution.kernel_is_weight and padded_channels(convolution, machine) == convolution.channels


def _orientations(convolution: Convolution) -> dict[int, Convolution]:
    """Return the convolution by the axis that vectors may run along."""
    if convolution.channels_last:
        return {_CHANNELS: convolution}
    return {_PIXELS: convolution, _CHANNELS: replace(convolution, is_turned=True)}


def _makes_lines(convolution: Convolution, machine: MachineLimits) -> bool:
    """Return whether tasks may make the lines of the image that they read."""
    has_lines = convolution.channels_last and convolution.lines > 1 and not convolution.phases
    is_padded = padded_channels(convolution, machine) > convolution.channels  # which replaces the image's block
    return convolution.prepares_image is not None and has_lines and not is_padded


def _schedule(sch: Schedule, convolution: Convolution, tile: ConvTile, values: Knobs, last: str) -> Any:
    """Schedule all but the blocks that make the image and the kernel. Returns the loop over tasks."""
    block = sch.get_sblock(convolution.block.name)
    if convolution.phases:
        _interleave(sch, convolution)
    packed = _packed(sch, convolution, tile) if values["pack"] != _IN_PLACE else None
    write = sch.cache_write(block, 0, "global") if last == convolution.block.name else sch.get_sblock(last)
    follows, write = _turn(sch, convolution, write, last) if convolution.is_turned else (None, write)
    loops = sch.get_loops(block)
    reduced = loops[len(convolution.block.spatial) :]
    *others, line = [loops[n] for n in convolution.other_axes] or [None]
    channel, pixel = loops[convolution.channel], loops[convolution.pixels[-1]]
    if convolution.has_channel_lanes:
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
    if values["image"] == _LINES:
        tasks, inner = others, [channels, *inner]
    else:
        tasks = [channels, *others] if values["outer"] == _CHANNELS else [*others, channels]
    phases = [loops[n] for n in convolution.phases]
    reduced = [reduced[n] for n in convolution.order]
    sch.reorder(*tasks, *inner, pixels, *phases, *reduced, row, vector, lane)
    for each in (follows, write):
        if each is not None:
            sch.reverse_compute_at(each, pixels)
    task = channels if values["pack"] == _BY_TASK else fuse(sch, tasks)
    parallelize(sch, task)
    if packed is not None:
        _pack(sch, packed, task if values["pack"] == _BY_TASK else None, tile)
    if values["pack"] == _ONCE:
        sch.annotate(packed, PACKS, True)
    sch.vectorize(lane)
    sch.unroll(row)
    sch.unroll(vector)
    *taps, _ = reduced
    copies = math.prod(int(sch.get(loop).extent) for loop in (*phases, *taps))
    if convolution.lacks_taps and copies <= (_MOST_COPIES if len(phases) < 3 else _MOST_COPIES // 2):
        for loop in (*phases, *taps):
            sch.unroll(loop)
    separate_partial_tiles(sch, pixels)
    if convolution.channels_last:
        fetch_ahead(sch, pixels, columns=convolution.channels, depth=convolution.depth)
    sch.decompose_reduction(block, reduced[0])
    if follows is not None:
        vectorize(sch, str(sch.get(follows).name_hint), sch.get_loops(follows)[-1], tile.lanes)
    if not convolution.is_turned:
        vectorize(sch, str(sch.get(write).name_hint), sch.get_loops(write)[-1], tile.lanes)
    return task


def _make_lines(sch: Schedule, image: Block, task: Any, machine: MachineLimits) -> None:
    """Make the lines of the image that a task reads where it begins."""
    block = sch.get_sblock(image.name)
    sch.compute_at(block, task)
    if not conditions(image):
        vectorize(sch, image.name, sch.get_loops(block)[-1], machine.lanes)


def _turn(sch: Schedule, convolution: Convolution, write: Any, last: str) -> tuple[Any, Any]:
    """Let the sums, and what follows them, have the channels last on the tile; ``write`` computes the result.

    Returns the block of what follows the sums, None if nothing does, and the one that stores the result.
    """

    def turned(*i: Any) -> list[Any]:
        return [*i[: convolution.channel], *i[convolution.channel + 1 :], i[convolution.channel]]

    block = sch.get_sblock(convolution.block.name)
    sch.transform_layout(block, ("write", 0), turned)
    if last == convolution.block.name:
        return None, write
    copy = sch.cache_write(write, 0, "global")
    sch.transform_layout(write, ("write", 0), turned)
    sch.transform_block_layout(write, IndexMap.from_func(turned, ndim=len(convolution.block.spatial)))
    return write, copy


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
    """Copy the kernel into panels ``[channels / size, …, size]`` of the channels of a tile, in the order of the sum."""
    size = tile.width if convolution.has_channel_lanes else tile.rows
    place = convolution.kernel_dimension
    between = convolution.kernel_order

    def panels(*i: Any) -> list[Any]:
        return [i[place] // size, *(i[n] for n in between), i[place] % size]

    copy = sch.cache_read(sch.get_sblock(convolution.block.name), convolution.kernel_index, "global")
    sch.transform_layout(copy, ("write", 0), panels)
    loops = sch.get_loops(copy)
    outer, inner = sch.split(loops[place], [None, size])
    sch.reorder(outer, *(loops[n] for n in between), inner)
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
    orientations = _orientations(convolution)
    choices = []
    for lanes, each in orientations.items():
        costs = {tile: cycles(each, tile, machine) for tile in tiles(each, machine)}
        best: dict[int, ConvTile] = {}
        for tile in costs:
            best.setdefault(tile.width, tile)
        likely = [*best.values()][:_SEED_TILES]
        if each.is_turned and costs:
            close = [tile for tile, cost in costs.items() if cost <= _CLOSE * min(costs.values())]
            likely.append(max(close, key=lambda tile: tile.registers))
        choices += [(costs[tile], lanes, tile) for tile in dict.fromkeys(likely)]
    choices.sort(key=lambda choice: choice[0])
    orders = [(lanes, tile, _PIXELS) for _, lanes, tile in choices]
    orders.insert(_SEED_TILES, (*choices[0][1:], _CHANNELS))
    for lanes, tile, outer in orders:
        each = orientations[lanes]
        pack = _ONCE if _packs_once(each, machine) else _IN_PLACE if each.kernel_is_contiguous else _FIRST
        image = _best_image(each, tile, machine, pack) if outer == _PIXELS else _ALL_BEFORE
        lines = _best_lines(each, tile, machine, pack, image)
        values = {"rows": tile.rows, "width": tile.width, "lanes": lanes, "outer": outer, "lines": lines}
        yield values | {"pack": pack, "image": image}
        if outer == _CHANNELS and each.has_channel_lanes and pack != _ONCE:
            lines = _best_lines(each, tile, machine, _BY_TASK, _ALL_BEFORE)
            yield values | {"lines": lines, "pack": _BY_TASK, "image": _ALL_BEFORE}


def _best_image(convolution: Convolution, tile: ConvTile, machine: MachineLimits, pack: int) -> int:
    """Return where the image is made, by the cycles that the threads take. Few lines are not shared evenly."""
    if not _makes_lines(convolution, machine):
        return _ALL_BEFORE
    by_task, after = (min(_costs(convolution, tile, machine, pack, each).values()) for each in (_LINES, _ALL_BEFORE))
    before = convolution.read(convolution.lines) / machine.lanes * _MAKING / machine.threads
    return _LINES if by_task <= _SPARED_PASS * (before + after) else _ALL_BEFORE


def _best_lines(convolution: Convolution, tile: ConvTile, machine: MachineLimits, pack: int, image: int) -> int:
    """Return the smallest number of lines in a task with which the threads finish early and together."""
    costs = _costs(convolution, tile, machine, pack, image)
    return next(lines for lines, cost in costs.items() if cost < 1.02 * min(costs.values()))


def _costs(convolution: Convolution, tile: ConvTile, machine: MachineLimits, pack: int, image: int) -> dict[int, float]:
    """Return the cycles that the slowest thread takes, by the number of lines in a task."""
    panels = padded_channels(convolution, machine) // (tile.width if convolution.has_channel_lanes else tile.rows)
    others = math.prod(convolution.extent(n) for n in convolution.other_axes[:-1])
    work = cycles(convolution, tile, machine) * others * convolution.lines
    costs = {}
    for lines in divisors(convolution.lines):
        parts = others * convolution.lines // lines
        tasks = parts if image == _LINES else panels * (1 if pack == _BY_TASK else parts)
        made = convolution.read(lines) / machine.lanes * _MAKING if image == _LINES else 0.0
        costs[lines] = math.ceil(tasks / machine.threads) * (work / tasks + made + _TASK_OVERHEAD)
    return costs
