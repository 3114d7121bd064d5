"""Ablations and lineage through a service: from Python, on the command line, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright import Client, InvalidRequest
from tests.integration.sdk.test_cli import Cli
from tests.support.programs import product_relu
from tests.support.sdk import tuned
from tests.support.service_client import ServiceClient


def test_a_best_is_raced_with_its_neighbours(client: Client, service: ServiceClient, tmp_path: Path) -> None:
    [task] = tuned(client.submit(product_relu(132), max_trials=8)).tasks
    record_id = task.record_id
    assert record_id is not None
    assert client.ablation(record_id) is None
    done = Cli(tmp_path, service)("record", "ablate", record_id)
    assert done.status == 0, done.err
    found = client.ablation(record_id)
    assert found is not None
    assert found.result is not None
    assert (found.record_id, found.state, found.error) == (record_id, "succeeded", None)
    assert found.result.neighbours
    for neighbour in found.result.neighbours:
        assert neighbour.changes
        assert neighbour.us is not None
        assert neighbour.slowdown is not None
        assert neighbour.changes[0].name in done.out
    # The played fleet takes one time for each program, whatever ran before: the slowest comes first.
    slowest = max(found.result.neighbours, key=lambda each: each.slowdown.value if each.slowdown else 0.0)
    assert slowest.changes[0].name in done.out.splitlines()[1]
    job = client.job(found.job_id).info
    assert (job.name, job.tasks) == (f"ablation of {task.name}", [])
    # The measured decision is the one that a job names.
    tuned_by = client.submit(product_relu(132), max_trials=8).wait(progress=False)
    [function] = tuned_by.bottlenecks().functions
    assert function.decision == slowest
    told = Cli(tmp_path, service)("job", "bottlenecks", tuned_by.id)
    assert told.status == 0, told.err
    for words in (slowest.changes[0].name, "limits it, and it reaches", "are above what the machine allows"):
        assert words in told.out


def test_a_record_tells_what_the_best_does_differently(client: Client, service: ServiceClient, tmp_path: Path) -> None:
    [task] = tuned(client.submit(product_relu(132), max_trials=8)).tasks
    records = [record for record in client.records(task.workload_hash) if not record.is_baseline]
    best = next(record for record in records if record.certified)
    assert client.lineage(best.id).best_id is None
    found = client.lineage(records[-1].id)
    assert (found.best_id, found.ancestors) == (best.id, [])
    assert found.against_best
    assert all(change.before != change.after for change in found.against_best)
    done = Cli(tmp_path, service)("record", "lineage", records[-1].id)
    assert "it descends from no measured trial" in done.out
    assert found.against_best[0].name in done.out


def test_the_unscheduled_program_has_no_decisions(client: Client) -> None:
    [task] = tuned(client.submit(product_relu(132), max_trials=8)).tasks
    [baseline] = [record for record in client.records(task.workload_hash) if record.is_baseline]
    with pytest.raises(InvalidRequest, match="makes no decisions"):
        client.ablate(baseline.id)
    assert client.lineage(baseline.id).against_best == []
