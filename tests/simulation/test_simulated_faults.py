"""Controllers, ledger and fleet under a seeded scheduler and clock, with faults at any step.

An error names its seed and what happened in it. `simulate` repeats it.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from db import Database, migrate
from tests.simulation.history import check
from tests.simulation.world import FAULTS, World

ROUND = (*range(12), 163)
"""In the last one a job made more trials than its budget, once."""
WHOLE = range(12, 1_000)
"""Each takes a tenth of a second of an idle core and more, most of it in SQLAlchemy."""


@dataclass(frozen=True, slots=True)
class Files:
    """An empty database at the newest revision, and one that each run has in its turn.

    It is opened once: to compile the statements anew for each run would take longer than to run them.
    """

    template: Path
    file: Path
    database: Database

    def emptied(self) -> Database:
        self.database.close()
        for earlier in self.file.parent.glob(f"{self.file.name}*"):
            earlier.unlink()
        shutil.copy(self.template, self.file)
        return self.database


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    template = tmp_path_factory.mktemp("simulation") / "template.db"
    migrate.upgrade(f"sqlite:///{template}")
    file = template.with_name("run.db")
    database = Database(f"sqlite:///{file}")
    yield Files(template, file, database)
    database.close()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Write no lines about faults: there are thousands."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


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
