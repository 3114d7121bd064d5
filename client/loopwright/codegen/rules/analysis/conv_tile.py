"""The tile of a convolution that stays in registers: its possible sizes, and what each would cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopwright.codegen.rules.analysis.convolution import Convolution
from loopwright.codegen.rules.analysis.rule import MachineLimits

_MOST_ROWS = 28
_MOST_VECTORS = 8
_SPARE_REGISTERS = 4
"""With fewer registers left, LLVM moves some of the sums to memory now and then."""
_FMA_LATENCY = 4
"""Cycles until a sum in a register can be added to again (AMD Zen 4, Intel since Skylake)."""
_WORST = 2.0
"""Tiles that should be slower than the fastest one by this factor are left out. Not tuned."""
_TILE_OVERHEAD = 30
"""Cycles for a tile beside its sums and its results. Not tuned."""


@dataclass(frozen=True)
class ConvTile:
    """``rows`` x ``vectors`` vectors of ``lanes`` elements of the result: channels, or pixels of a line."""

    rows: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def registers(self) -> int:
        return self.rows * self.vectors + self.vectors + 1

    @staticmethod
    def of(convolution: Convolution, machine: MachineLimits, rows: int, width: int) -> ConvTile:
        """Return the tile of that width with the longest vectors that it, and the axis, is a whole number of."""
        extent = width if convolution.has_channel_lanes else convolution.extent(convolution.pixels[-1])
        lanes = next(n for n in range(machine.lanes, 0, -1) if math.gcd(width, extent) % n == 0)
        return ConvTile(rows, width // lanes, lanes)


def padded_channels(convolution: Convolution, machine: MachineLimits) -> int:
    """Return the number of channels with those of padding, which are there if vectors of no good length divide them."""
    channels = convolution.channels
    longest = min(machine.lanes, channels)
    lanes = max(n for n in range(1, machine.lanes + 1) if channels % n == 0)
    is_plain = convolution.group == channels and not convolution.phases and convolution.kernel_is_contiguous
    if not convolution.channels_last or not is_plain or (lanes > 1 and 2 * lanes >= longest):
        return channels
    lanes = next(n for n in (4, 8, 16) if n >= longest)
    return math.ceil(channels / lanes) * lanes


def fits(convolution: Convolution, machine: MachineLimits, tile: ConvTile) -> bool:
    """Return whether channels are a whole number of tiles, and vectors a divisor of the axis that they run along."""
    padded = padded_channels(convolution, machine)
    channels = padded if padded > convolution.channels else convolution.group
    if not convolution.has_channel_lanes:
        return channels % tile.rows == 0 and tile.lanes > 1
    is_short = tile.rows > convolution.extent(convolution.pixels[-1])
    return channels % tile.width == 0 and tile.lanes > 1 and not is_short


def tiles(convolution: Convolution, machine: MachineLimits) -> list[ConvTile]:
    """Return the tiles that fit the registers, the one that should be fastest first.

    Channels are a whole number of tiles. The last tile of a line of pixels may have fewer vectors or rows.
    """
    padded, pixels = padded_channels(convolution, machine), convolution.extent(convolution.pixels[-1])
    channels = padded if padded > convolution.channels else convolution.group
    if convolution.has_channel_lanes:
        rows = [n for n in range(1, min(_MOST_ROWS, pixels) + 1) if n <= machine.registers // 2 or n == pixels]
        widths = [n for n in _widths(channels, machine) if channels % n == 0]
    else:
        rows = [n for n in range(1, min(_MOST_ROWS, channels) + 1) if channels % n == 0]
        widths = _widths(pixels, machine)
    sizes = [ConvTile.of(convolution, machine, n, width) for n in rows for width in widths]
    fitting = [size for size in sizes if size.registers <= machine.registers]
    if convolution.stride > 1 and not convolution.has_channel_lanes:
        # LLVM loads every other element well for one vector; for several, it loads one element after another.
        fitting = [size for size in fitting if size.vectors == 1]
    costs = {tile: cycles(convolution, tile, machine) for tile in fitting}
    return [tile for tile in sorted(fitting, key=costs.__getitem__) if costs[tile] <= _WORST * min(costs.values())]


def _widths(extent: int, machine: MachineLimits) -> list[int]:
    """Return the widths of tiles that divide an axis into vectors without a rest."""
    lanes = [n for n in range(2, machine.lanes + 1) if extent % n == 0]
    return sorted({n * count for n in lanes for count in range(1, _MOST_VECTORS + 1) if n * count <= extent})


def cycles(convolution: Convolution, tile: ConvTile, machine: MachineLimits) -> float:
    """Return an estimate of the cycles for all tiles of one line of pixels and all channels.

    Fitted by eye to tiles of a dozen convolutions on AMD Zen 4: only the order of tiles matters.
    """
    rows, columns = convolution.channels, convolution.extent(convolution.pixels[-1])
    if convolution.has_channel_lanes:
        rows, columns = columns, padded_channels(convolution, machine)
    vector = 1.0 if tile.lanes > machine.lanes // 2 else 0.55
    sums = tile.rows * tile.vectors
    loads = (1.0 if convolution.has_channel_lanes else 1.5) * vector * tile.vectors + 0.5 * tile.rows
    step = max(sums * vector, loads, _FMA_LATENCY) + 0.02 * loads
    if tile.lanes & (tile.lanes - 1):
        # LLVM loads a vector of 14 elements as one of 8, one of 4 and one of 2.
        step += 1.2 * tile.vectors
    if tile.registers > machine.registers - _SPARE_REGISTERS:
        step *= 1.03
    tall, rest_rows = divmod(rows, tile.rows)
    wide, rest_columns = divmod(columns, tile.width)
    parts = float(tall * wide)
    if rest_rows or rest_columns:
        # What remains has too few sums to hide the latency of each.
        part = rest_rows / tile.rows if rest_rows else rest_columns / tile.width
        parts += 0.1 + max(part, _FMA_LATENCY / (sums * vector)) * (wide if rest_rows else tall)
    return parts * (convolution.depth * step + _TILE_OVERHEAD + 4 * sums)
