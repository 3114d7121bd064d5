"""The service's durable ledger keeps to the contract of the tuner's port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from loopwright.codegen.kinds import AnsweredFrom
from service.controller.claimed_tasks import ClaimedTasks
from service.controller.ledger import WAITED, DatabaseLedger
from tests.contract.db.conftest import World
from tuner.errors import LeaseLost
from tuner.testing.ledger_contract import MEASURED, SPANS, LedgerContract, candidates, certificate
from tuner.types import BASELINE, StopReason, Trial, Waited


class TestDatabaseLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, world: World) -> DatabaseLedger:
        world.job("a", "b")
        return claimed_ledger(world)

    @pytest.fixture
    def reopen(self, world: World) -> Callable[[DatabaseLedger], DatabaseLedger]:
        """The lease ends, and another run claims the job."""

        def reopened(_: DatabaseLedger) -> DatabaseLedger:
            world.clock.forward(3600)
            return claimed_ledger(world)

        return reopened


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger, trial: ledger.history(0),
        lambda ledger, trial: ledger.propose(0, candidates(1, first=9)),
        lambda ledger, trial: ledger.finish((trial, MEASURED)),
        lambda ledger, trial: ledger.note_kill(trial, SPANS[1]),
        lambda ledger, trial: ledger.certify(0, certificate(BASELINE.hash), StopReason.BUDGET),
        lambda ledger, trial: ledger.fail(0, "no result"),
        lambda ledger, trial: ledger.end(StopReason.PLATEAU),
    ],
    ids=["history", "propose", "finish", "note_kill", "certify", "fail", "end"],
)
def test_a_run_whose_lease_was_taken_loses_it_at_every_call(
    world: World, call: Callable[[DatabaseLedger, Trial], object]
) -> None:
    world.job("a")
    ledger = claimed_ledger(world)
    (trial,) = ledger.propose(0, [BASELINE])
    world.clock.forward(3600)
    claimed_ledger(world).history(0)  # takes over the unfinished trial
    with pytest.raises(LeaseLost):
        call(ledger, trial)


def test_a_job_says_once_why_its_search_stopped_early(world: World) -> None:
    job = world.job("a", notes=("taken as is",))
    ledger = claimed_ledger(world)
    ledger.end(StopReason.BUDGET)
    assert world.db.jobs.get(job.id).notes == ("taken as is",)
    ledger.end(StopReason.PLATEAU)
    ledger.end(StopReason.PLATEAU)
    note = "the search stopped: the next minute was expected to gain less than 1 %"
    assert world.db.jobs.get(job.id).notes == ("taken as is", note)


def test_a_job_says_once_that_its_races_waited_for_the_machine(world: World) -> None:
    job = world.job("a", "b")
    ledger = claimed_ledger(world)
    for task in (0, 1):
        (trial,) = ledger.propose(task, [BASELINE])
        ledger.finish((trial, MEASURED))
        ledger.certify(task, replace(certificate(BASELINE.hash), waited=Waited(1.5, 2.0)), StopReason.BUDGET)
    assert world.db.jobs.get(job.id).notes == (WAITED,)


def test_tasks_that_this_run_does_not_tune_take_what_is_certified_of_them(world: World) -> None:
    world.measured(0.5, hash="known")
    world.job("a", "known", "unknown")
    claimed = world.claim()
    mine, known, unknown = world.db.tasks.of_job(claimed.job.id)
    assert DatabaseLedger(world.db, claimed, [mine], 32, [known]).elsewhere() == known.weight * 0.5
    assert DatabaseLedger(world.db, claimed, [mine], 32, [known, unknown]).elsewhere() is None
    ClaimedTasks.read(world.db, claimed).answer(known, AnsweredFrom.DATABASE)
    answered = world.task(claimed.job.id, 1)
    assert DatabaseLedger(world.db, claimed, [mine], 32, [answered]).elsewhere() == known.weight * 0.5


def claimed_ledger(world: World) -> DatabaseLedger:
    claimed = world.claim()
    tasks = world.db.tasks.of_job(claimed.job.id)
    for task in tasks:
        assert task.state == "running" or world.db.tasks.try_start(task.id, claimed.lease_token)
    return DatabaseLedger(world.db, claimed, tasks, budget=32)
