"""Jobs with candidates whose processes are killed whenever they run, on a real cluster."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import ray

from db import Database, migrate
from db.inputs import NewJob, WorkerReport
from db.views import TrialView
from loopwright.codegen.kinds import FailureKind, JobState, Lane
from service.controller.job_runner import JobRunner, RunEnd
from service.fleet.health import LOST_TOO_OFTEN, LOST_WITHIN_SECONDS
from service.settings import Settings
from tests.support import workloads as programs
from tests.support.builders import KillingBuilder, is_killer
from tuner.budget import Budget
from tuner.types import TaskSpec
from workers.child.search_children import SearchChildren
from workers.ray.cluster import Offer, actor_class
from workers.ray.crew import Crew
from workers.ray.names import NAMESPACE
from workers.ray.sharing import Sharing
from workers.walls.levels import Policy, choose

TRIALS = 24


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = Settings(data_dir=tmp_path).database
    migrate.upgrade(url)
    return url


@pytest.mark.whole
def test_a_candidate_that_was_killed_twice_is_not_tried_again(offer: Offer, url: str) -> None:
    builder = actor_class(KillingBuilder).options(name="killing builder", namespace=NAMESPACE, num_cpus=0)
    killing = builder.remote(programs.killed().module_json)
    database = Database(url)
    runner = JobRunner(database, SearchChildren(choose(Policy.PREFER)), Sharing())
    database.workers.register(
        WorkerReport(offer.id, offer.host, offer.device, offer.device_class, builders=1, sandbox=offer.sandbox)
    )
    try:
        jobs = [run(database, runner, offer) for _ in range(2)]
        tried = Counter(trace for trace in ray.get(killing.take_traces.remote()) if is_killer(trace))
        killed = [trial for trials in jobs for trial in trials if trial.failure_kind is FailureKind.KILLED]
        barred = database.trials.barred(killed[0].workload_hash, offer.device_class.id)
    finally:
        database.close()
        ray.kill(killing)
    # Each was tried twice, by one job, and both attempts are in its timeline.
    assert set(tried.values()) == {2}
    assert sorted(tried) == sorted(barred)
    assert len(killed) == len(barred) >= LOST_TOO_OFTEN
    for trial in killed:
        assert [span.lane for span in trial.spans if span.lane is not Lane.PROPOSE].count(Lane.MEASURE) == 2
    # The others are none the worse for it.
    for trials in jobs:
        assert len(trials) == TRIALS + 1
        assert {trial.failure_kind for trial in trials} == {None, FailureKind.KILLED}


def run(database: Database, runner: JobRunner, offer: Offer) -> list[TrialView]:
    """Run a job that searches whatever is known, with the same seed each time, and return its trials."""
    new = NewJob("killed", "{}", offer.device_class, Budget(TRIALS), seed=1, force=True)
    database.jobs.create(new, [TaskSpec(programs.product(), 1)], "0.27")
    claimed = database.jobs.claim("test", 600)
    assert claimed is not None
    crew = Crew({"killing builder": 1}, {offer.measurer: offer.id})
    assert runner.run(claimed, lambda: crew) is RunEnd.DONE
    assert database.jobs.get(claimed.job.id).state is JobState.SUCCEEDED
    # The worker is not to be held out for what the candidates do.
    assert database.workers.lost(LOST_WITHIN_SECONDS) == {}
    return list(database.trials.all_of_job(claimed.job.id))
