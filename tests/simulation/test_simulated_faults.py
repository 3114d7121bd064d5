"""Controllers, ledger and fleet under a seeded scheduler and clock, with faults at any step.

An error names its seed and what happened in it. `simulate` repeats it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from tests.simulation.files import Files
from tests.simulation.history import check
from tests.simulation.world import FAULTS, World

ROUND = (*range(12), 163)
"""In the last one a job made more trials than its budget, once."""
WHOLE = range(12, 1_000)
"""Each takes a tenth of a second of an idle core and more, most of it in SQLAlchemy."""


def simulate(files: Files, seed: int) -> World:
    """Run a seed and check its history. An error names the seed and what happened in it."""
    world = World(seed, files.emptied())
    try:
        world.run()
        check(world)
    except Exception as error:
        error.add_note("\n".join([f"seed {seed}: {world.scenario}", *world.scheduler.history]))
        raise
    return world


def simulate_all(files: Files, seeds: Iterable[int]) -> Counter[str]:
    """Run seeds; return how often each fault happened."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        seen += simulate(files, seed).faults
    return seen


def test_no_work_is_lost_doubled_or_stuck(files: Files) -> None:
    assert simulate_all(files, ROUND).keys() >= {"crash before", "answer lost", "clock jump"}


@pytest.mark.whole
def test_no_work_is_lost_doubled_or_stuck_in_many_runs(files: Files) -> None:
    assert simulate_all(files, WHOLE).keys() == set(FAULTS)


def test_a_seed_repeats(files: Files) -> None:
    def told(world: World) -> tuple[int, int, float, list[str]]:
        return world.transactions, world.scheduler.steps, world.scheduler.now, world.scheduler.history

    runs = [told(simulate(files, 7)) for _ in range(2)]
    assert runs[0] == runs[1]
