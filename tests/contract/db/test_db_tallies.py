"""Outcomes of different jobs do not wait for each other, and are all counted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from db.models import TrialCount, Usage
from loopwright.codegen.kinds import FailureKind, JobState, Lane, Stage
from tests.contract.db.conftest import World
from tuner.types import Failure, Measured, Span

SPANS = (Span(Lane.MEASURE, "w", 5.0, 5.5),)


def test_what_is_tallied_is_counted_before_and_after_it_is_added_up(world: World) -> None:
    for hash in ("a", "b"):
        claimed, task = world.started(hash, priority=ord(hash))
        trials = world.propose(claimed, task, "[0]", "[1]", "[2]")
        for trial, failed in zip(trials, (False, True, False), strict=True):
            failure = Failure(Stage.RUN, FailureKind.CRASH, "died", "w", SPANS)
            outcome = failure if failed else Measured((0.5,), "w", SPANS)
            assert world.db.trials.finish(trial.id, claimed.lease_token, outcome)
        world.clock.forward(86400)

    def all_counts() -> tuple[object, ...]:
        return (
            world.db.uses.of("owner"),
            world.db.counts(),
            world.db.gauges.use(),
            world.db.cost_models.available(world.device_class.id, "0.27"),
        )

    before = all_counts()
    assert [(day.day, day.trials, day.device_seconds) for day in world.db.uses.of("owner").days] == [
        ("2030-01-02", 3, 1.5),
        ("2030-01-01", 3, 1.5),
    ]
    assert world.db.counts().trials == {"measured": 4, "CRASH": 2}
    assert world.db.tallies.add_up() == 4
    assert all_counts() == before
    assert world.db.tallies.add_up() == 0
    assert all_counts() == before


def test_several_may_add_up_while_jobs_count(world: World) -> None:
    runs = [world.started(f"w{number}") for number in range(6)]
    trials = [(claimed, world.propose(claimed, task, *map(str, range(8)))) for claimed, task in runs]

    def finish(number: int) -> None:
        claimed, own = trials[number]
        for trial in own:
            assert world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "w", SPANS))

    with ThreadPoolExecutor(8) as pool:
        added = pool.map(lambda _: world.db.tallies.add_up(), range(8))
        list(pool.map(finish, range(6)))
        list(added)
    while world.db.tallies.add_up():
        pass
    assert world.db.counts().trials == {"measured": 48}
    assert (world.db.uses.of("owner").today.trials, world.db.uses.of("owner").today.device_seconds) == (48, 24.0)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_an_outcome_waits_for_no_row_that_all_jobs_share(world: World) -> None:
    """Another transaction has these rows locked, as that of an outcome had until it was committed."""
    claimed, task = world.started()
    first, second = world.propose(claimed, task, "[0]", "[1]")
    assert world.db.trials.finish(first.id, claimed.lease_token, Measured((0.5,), "w", SPANS))
    world.db.tallies.add_up()
    with world.db._engine.begin() as other:
        assert other.execute(sa.update(Usage).values(trials=Usage.trials)).rowcount == 1
        assert other.execute(sa.update(TrialCount).values(trials=TrialCount.trials)).rowcount == 1
        with ThreadPoolExecutor(1) as pool:
            outcome = Measured((0.25,), "w", SPANS)
            assert pool.submit(world.db.trials.finish, second.id, claimed.lease_token, outcome).result(timeout=20)
    assert world.db.uses.of("owner").today.trials == 2


def test_a_job_that_ends_leaves_its_tallies(world: World) -> None:
    claimed, task = world.started()
    (trial,) = world.propose(claimed, task, "[0]")
    world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "w", SPANS))
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.CANCELLED)
    assert world.db.tallies.add_up() == 1
    assert (world.db.uses.of("owner").today.trials, world.db.counts().trials) == (1, {"measured": 1})
