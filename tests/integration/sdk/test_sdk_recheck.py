"""Bests that are raced anew, through a service: by hand, from Python and the command line."""

from __future__ import annotations

from pathlib import Path

from loopwright import Client
from tests.integration.sdk.test_cli import Cli
from tests.support.certificates import claim
from tests.support.played_service import PlayedService
from tests.support.programs import product_relu
from tests.support.sdk import tuned
from tests.support.service_client import ServiceClient
from tests.support.waiting import wait_for


def test_a_best_that_claims_too_much_is_found_and_searched_anew(
    client: Client, service: ServiceClient, tmp_path: Path
) -> None:
    [task] = tuned(client.submit(product_relu(116), max_trials=16)).tasks
    claim(service, task.workload_hash, 1e-3)
    cli = Cli(tmp_path, service)
    done = cli("schedule", "recheck", task.workload_hash)
    assert done.status == 1, done.err
    assert "regression" in done.out
    best = client.best(task.workload_hash)
    assert best is not None
    assert best.certificate.regressed_at is not None
    searched = tuned(client.submit(product_relu(116), max_trials=16))
    assert searched.tasks[0].answered_from == "search"
    renewed = client.best(task.workload_hash)
    assert renewed is not None
    assert renewed.certificate.regressed_at is None
    assert renewed.best_us > best.best_us


def test_a_race_is_cancelled(client: Client, service: PlayedService) -> None:
    [task] = tuned(client.submit(product_relu(124), max_trials=4)).tasks
    with service.stage.races_held():
        job = client.recheck([task.workload_hash])
        wait_for("the job to run", lambda: job.refresh().state == "running")
        job.cancel()
        wait_for("its end", lambda: job.refresh().state == "cancelled")


def test_a_workload_without_a_best_is_refused(service: ServiceClient, tmp_path: Path) -> None:
    done = Cli(tmp_path, service)("schedule", "recheck", "0" * 32)
    assert (done.status, done.out) == (3, "")
