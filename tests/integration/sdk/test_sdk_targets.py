"""Several targets in one submission, through the SDK: this machine's own, and a plainer one."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from loopwright import Client
from loopwright.errors import InvalidRequest
from tests.support.played_service import PlayedService
from tests.support.programs import product_relu
from tests.support.service_client import JOB_SECONDS

PLAIN = {"kind": "llvm", "mcpu": "x86-64-v2"}


def test_each_target_has_a_ranking_and_a_certified_best_of_its_own(client: Client) -> None:
    output = io.StringIO()
    group = client.submit(product_relu(140), targets=["auto", PLAIN], max_trials=4, name="both")
    group.wait(console=Console(file=output, width=100, force_terminal=True), timeout=JOB_SECONDS)
    assert group.succeeded, [job.error for job in group.jobs]
    own, plain = group["auto"], group[PLAIN]
    assert plain.info.target["mcpu"] == "x86-64-v2"
    [task], [plain_task] = own.tasks, plain.tasks
    assert task.workload_hash == plain_task.workload_hash
    for job in (own, plain):
        [task] = job.tasks
        assert (task.certified, task.answered_from, task.trials) == (True, "search", 4)
        best = client.best(task.workload_hash, job.info.target)
        assert best is not None
        assert (best.target, best.device_class) == (job.info.target, job.info.device_class)
        assert best.record_id == task.record_id
        ranking = list(client.records(task.workload_hash, job.info.target))
        assert {record.device_class for record in ranking} == {job.info.device_class}
        assert [record.median_us for record in ranking] == sorted(record.median_us for record in ranking)
        client.apply(product_relu(140), job.info.target)
        assert client.last_report is not None
        assert [function.best.record_id for function in client.last_report.hits] == [task.record_id]
    for words in ("llvm x86-64-v2", f"llvm {own.info.target['mcpu']}", "4 trials", "succeeded"):
        assert words in output.getvalue()
    found = client.job_group(group.id)
    assert [job.id for job in found.jobs] == [own.id, plain.id]
    assert found[own.info.target].model == own.model


def test_one_target_without_a_worker_stops_all(client: Client) -> None:
    foreign = "llvm -mtriple=aarch64-linux-gnu"
    with pytest.raises(InvalidRequest, match="aarch64-linux-gnu"):
        client.submit(product_relu(144), targets=["auto", PLAIN, foreign], name="never stored")
    assert "never stored" not in {job.name for job in client.jobs()}


def test_a_group_is_cancelled(service: PlayedService, client: Client) -> None:
    with service.stage.held(after=3):
        group = client.submit(product_relu(144), targets=["auto", PLAIN], max_trials=5_000, name="endless")
        group.cancel().wait(progress=False, timeout=JOB_SECONDS)
    assert [job.state for job in group.jobs] == ["cancelled", "cancelled"]
