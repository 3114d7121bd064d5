"""What tiles of products need of a GPU, and which ones are measured first."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from loopwright.codegen.rules.analysis.gpu_tile import GpuTile, Operand, Shape, expected_cycles, knobs, seeds
from loopwright.codegen.rules.analysis.occupancy import Multiprocessor
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.target import target_from

FLOAT = Operand(4, depth_is_last=False)
SQUARE = Shape(1, 2048, 2048, 2048, FLOAT, FLOAT)
DEEP = Shape(1, 128, 128, 8192, FLOAT, FLOAT)
BATCHED = Shape(8, 96, 40, 512, FLOAT, FLOAT)
TILE = GpuTile(8, 16, 8, 16, step=8, stages=2)


def machine(arch: str) -> MachineLimits:
    return MachineLimits.of(target_from({"kind": "cuda", "arch": arch}))


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared_bytes", "blocks"),
    [
        (90, 256, 64, 0, 4),  # 65,536 registers
        (90, 128, 32, 0, 16),  # 2,048 threads
        (86, 128, 32, 0, 12),  # 1,536 threads
        (90, 32, 32, 0, 32),  # 32 blocks
        (86, 128, 32, 48 * 1024, 2),  # 100 KiB
        (80, 128, 32, 40 * 1024, 4),  # 164 KiB, of which each block takes one more
        (90, 1024, 128, 0, 0),  # more registers than there are
        (1, 1024, 32, 0, 1),  # not known: as the smallest
    ],
)
def test_blocks_that_run_at_a_time(
    capability: int, threads: int, registers: int, shared_bytes: int, blocks: int
) -> None:
    assert Multiprocessor.of(capability).resident_blocks(threads, registers, shared_bytes) == blocks


def test_a_tile_divides_the_product_and_fits_in_shared_memory() -> None:
    odd = Shape(1, 37, 120, 8 * 73, Operand(4, depth_is_last=True), FLOAT)
    largest = {knob.name: knob.values[-1] for knob in knobs(odd, machine("sm_90"))}
    tile = GpuTile.of(odd, odd.depth, largest)
    assert (37 % tile.height, 120 % tile.width, odd.depth % tile.step) == (0, 0, 0)
    assert tile.shared_bytes(odd) <= 48 * 1024


def test_rows_along_the_depth_are_padded() -> None:
    along = replace(SQUARE, left=Operand(4, depth_is_last=True), right=Operand(2, depth_is_last=True))
    rows = {step: replace(TILE, step=step, stages=1).shared_bytes(along) for step in (4, 6, 8, 16)}
    assert rows == {
        step: 128 * 4 * left + 128 * 2 * right
        for step, left, right in ((4, 4, 8), (6, 12, 8), (8, 12, 8), (16, 20, 24))
    }


def test_more_steps_in_shared_memory_hide_the_latency_of_a_lonely_block() -> None:
    small = replace(TILE, rows=4, columns=4)
    cycles = [expected_cycles(DEEP, machine("sm_90"), replace(small, stages=stages)) for stages in (1, 2, 3)]
    assert cycles[0] > cycles[1] > cycles[2]


def test_the_depth_of_a_product_of_one_tile_is_split() -> None:
    assert expected_cycles(DEEP, machine("sm_80"), TILE, 32) < expected_cycles(DEEP, machine("sm_80"), TILE)
    assert all(split > 1 for split, _ in seeds(DEEP, machine("sm_80"), (1, 2, 4, 8, 16, 32, 64)))
    many = replace(SQUARE, rows=8192, columns=8192)
    assert expected_cycles(many, machine("sm_80"), TILE, 32) > expected_cycles(many, machine("sm_80"), TILE)


def test_a_tile_that_no_multiprocessor_can_run_takes_forever() -> None:
    assert expected_cycles(SQUARE, machine("sm_90"), GpuTile(16, 32, 8, 32, step=8, stages=1)) == math.inf


@pytest.mark.parametrize(
    ("shape", "arch"),
    [
        pytest.param(shape, arch, marks=[] if kept == arch else [pytest.mark.whole])
        for shape, kept in ((SQUARE, "sm_90"), (DEEP, "sm_80"), (BATCHED, "sm_75"))
        for arch in ("sm_75", "sm_80", "sm_86", "sm_90")
    ],
)
def test_seeds_are_tiles_of_several_sizes_that_some_block_can_have(shape: Shape, arch: str) -> None:
    gpu = machine(arch)
    found = seeds(shape, gpu, (1, 2, 4))
    tiles = [(split, GpuTile.of(shape, shape.depth // split, values)) for split, values in found]
    assert len({(split, tile.height, tile.width) for split, tile in tiles}) == len(found) > 1
    cycles = [expected_cycles(shape, gpu, tile, split) for split, tile in tiles]
    assert cycles == sorted(cycles)
    assert cycles[-1] < math.inf
