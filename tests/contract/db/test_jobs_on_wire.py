"""Jobs as the API sends them: read anew while they run, and once when they have ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.context import Context
from service.identity.visitor import Identities
from service.jobs import wire
from service.jobs.finished import on_wire
from service.settings import Settings
from tests.contract.db.conftest import BASELINE, World
from tuner.types import Measured


@pytest.fixture
def ctx(world: World) -> Context:
    unused: Any = None
    return Context(Settings(), world.db, unused, Identities(world.db), unused, unused, unused, unused)


def test_jobs_are_sent_with_their_tasks_in_the_order_asked_for(world: World, ctx: Context) -> None:
    world.measured(0.5)
    world.measured(0.25, hash="w1")
    world.job("a", "b")
    views = world.db.jobs.page().items
    expected = [wire.job(view, world.db.tasks.of_job(view.id)) for view in views]
    for _ in range(2):
        assert on_wire(ctx, views) == expected
        assert on_wire(ctx, views[::-1]) == expected[::-1]


def test_a_running_job_is_read_anew(world: World, ctx: Context) -> None:
    claimed, task = world.started()
    assert on_wire(ctx, [claimed.job])[0].tasks[0].baseline_us is None
    [trial] = world.db.trials.propose(task.id, claimed.lease_token, [BASELINE])
    assert world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "worker"))
    assert on_wire(ctx, [claimed.job])[0].tasks[0].baseline_us == 0.5e6


def test_a_job_that_has_ended_is_read_once(world: World, ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    world.measured(0.5)
    views = world.db.jobs.page().items
    sent = on_wire(ctx, views)
    monkeypatch.setattr(world.db, "tasks", None)
    assert on_wire(replace(ctx, database=world.db), views) == sent
