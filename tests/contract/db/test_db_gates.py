"""Gates are stored with their job, and their results under its lease."""

from __future__ import annotations

import pytest

from db.access.views import Quota
from db.states import Scope
from db.views import GateView
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World
from tuner.errors import LeaseLost


def test_a_gates_result_is_stored_under_the_jobs_lease(world: World) -> None:
    job = world.job("w-1", gate={"against": "functions", "reference": []})
    assert world.db.gates.of_job(job.id) == GateView({"against": "functions", "reference": []}, None)
    claimed = world.claim()
    with pytest.raises(LeaseLost):
        world.db.gates.store(job.id, "another token", {"verdict": "regression"})
    world.db.gates.store(job.id, claimed.lease_token, {"verdict": "no regression"})
    stored = world.db.gates.of_job(job.id)
    assert stored is not None
    assert stored.result == {"verdict": "no regression"}
    world.db.jobs.finish(job.id, claimed.lease_token, JobState.CANCELLED)
    with pytest.raises(LeaseLost):
        world.db.gates.store(job.id, claimed.lease_token, {})


def test_a_job_without_a_gate_has_none(world: World) -> None:
    assert world.db.gates.of_job(world.job("w-1").id) is None


def test_the_newest_job_of_a_name_is_found(world: World) -> None:
    for user in ("ada", "ben"):
        world.db.users.create(user, Scope.SUBMIT, Quota())
    world.measured(0.5, hash="w-1", name="main", user_name="ada")
    world.measured(0.5, hash="w-2", name="main", user_name="ada")
    world.measured(0.5, hash="w-4", name="main", user_name="ben")
    world.job("w-3", name="main", user_name="ada")
    found = world.db.jobs.newest_named("main", JobState.SUCCEEDED, "ada")
    assert found is not None
    assert [task.workload_hash for task in world.db.tasks.of_job(found.id)] == ["w-2"]
    assert world.db.jobs.newest_named("other", JobState.SUCCEEDED, "ada") is None
