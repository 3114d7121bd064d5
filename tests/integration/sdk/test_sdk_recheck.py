"""Bests that are raced anew, through a real service: by hand, from Python and the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright import Client, Job
from tests.integration.sdk.test_cli import Cli
from tests.support.certificates import claim
from tests.support.programs import product_relu
from tests.support.service_client import ServiceClient


@pytest.fixture(scope="module")
def tuned(client: Client) -> Job:
    return client.submit(product_relu(116), max_trials=16).wait(progress=False)


def test_a_best_is_raced_anew(client: Client, tuned: Job) -> None:
    [task] = tuned.tasks
    best = client.best(task.workload_hash)
    assert best is not None
    assert best.certificate.conditions is not None
    job = client.recheck([task.workload_hash]).wait(progress=False)
    assert job.state == "succeeded"
    [found] = job.rechecks()
    assert found.result is not None
    assert found.result.rounds >= 3
    assert found.result.conditions == best.certificate.conditions
    assert found.result.best_us is not None
    assert found.result.best_us == pytest.approx(best.best_us, rel=2)
    assert [event.type for event in job.events()].count("recheck") == 1
    again = client.best(task.workload_hash)
    assert again is not None
    assert again.certificate.checked_at is not None


def test_a_best_that_claims_too_much_is_found_and_searched_anew(
    client: Client, service: ServiceClient, tuned: Job, tmp_path: Path
) -> None:
    [task] = tuned.tasks
    claim(service, task.workload_hash, 1e-3)
    cli = Cli(tmp_path, service)
    done = cli("schedule", "recheck", task.workload_hash)
    assert done.status == 1, done.err
    assert "regression" in done.out
    best = client.best(task.workload_hash)
    assert best is not None
    assert best.certificate.regressed_at is not None
    searched = client.submit(product_relu(116), max_trials=16).wait(progress=False)
    assert searched.tasks[0].answered_from == "search"
    renewed = client.best(task.workload_hash)
    assert renewed is not None
    assert renewed.certificate.regressed_at is None
    assert renewed.best_us > best.best_us


def test_a_workload_without_a_best_is_refused_in_words(service: ServiceClient, tmp_path: Path) -> None:
    done = Cli(tmp_path, service)("schedule", "recheck", "0" * 32)
    assert done.status == 3
    assert "None of these workloads has a best" in done.err
