"""Ways in and what becomes of a job, through the SDK."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import loopwright
from db.jobs.tasks import Tasks
from loopwright import Client, Job, frontends
from loopwright.codegen.serialization import module_to_json
from tests.support.played_service import PlayedService
from tests.support.programs import MM_RELU, product_relu, renamed, schedule_mm_relu
from tests.support.sdk import tuned
from tests.support.service_client import ServiceClient
from tests.support.tuner_programs import mlp
from tests.support.waiting import wait_for


def as_script_file(folder: Path) -> Path:
    path = folder / "mm_relu.py"
    path.write_text(MM_RELU)
    return path


def as_json_file(folder: Path) -> Path:
    path = folder / "mm_relu.json"
    path.write_text(module_to_json(frontends.to_program(MM_RELU).module))
    return path


@pytest.mark.parametrize(
    "way_in",
    [
        pytest.param(lambda _: frontends.to_program(MM_RELU).module, id="IRModule"),
        pytest.param(lambda _: frontends.to_program(MM_RELU).module["main"], id="PrimFunc"),
        pytest.param(lambda _: MM_RELU, id="TVMScript text"),
        pytest.param(as_script_file, id="TVMScript path"),
        pytest.param(lambda folder: str(as_json_file(folder)), id="TVM JSON path"),
        pytest.param(lambda _: renamed(MM_RELU), id="the same program by other names"),
    ],
)
def test_every_way_in_is_the_same_workload(
    client: Client, product: Job, tmp_path: Path, way_in: Callable[[Path], Any]
) -> None:
    job = tuned(client.submit(way_in(tmp_path), max_trials=16))
    [task], [known] = job.tasks, product.tasks
    assert task.workload_hash == known.workload_hash
    assert (task.answered_from, job.progress.trials) == ("database", 0)


def test_auto_is_a_target_that_a_worker_offers(client: Client, product: Job) -> None:
    [offer] = [offer for offer in client.targets() if offer.is_auto]
    assert product.info.target == offer.target
    [worker] = client.workers()
    assert worker.alive
    assert worker.target == offer.target


def test_progress_is_drawn_to_the_end(service: PlayedService, client: Client) -> None:
    output = io.StringIO()
    console = Console(file=output, width=100, force_terminal=True)
    with ThreadPoolExecutor() as waiting:
        with service.stage.held(after=3):
            job = client.submit(product_relu(48), max_trials=4, name="drawn")
            wait_for("a trial", lambda: job.refresh().progress.trials > 0)
            waited = waiting.submit(job.wait, progress=True, console=console)
            wait_for("trials on the console", lambda: re.search("[123]/4", output.getvalue()))
        waited.result()
    assert job.state == "succeeded"
    assert re.search("searching|closing race, 1 of 1", output.getvalue())
    for word in ("drawn", "4 trials", "certified", "x)"):
        assert word in output.getvalue()


def test_a_search_stops_when_the_model_is_as_fast_as_asked_for(client: Client) -> None:
    job = tuned(client.submit(product_relu(60), max_trials=400, target_latency_us=1e6))
    assert "the search stopped: the model reached the target latency" in job.info.notes
    assert 0 < job.progress.trials < 100
    again = tuned(job.resubmit(target_latency_us=2e6, force=True))
    assert (again.info.budget.max_trials, again.info.budget.target_latency_us) == (400, 2e6)
    assert "the search stopped: the model reached the target latency" in again.info.notes


@pytest.mark.whole
def test_a_search_stops_at_its_plateau_and_answers_the_next_one(client: Client) -> None:
    job = tuned(client.submit(product_relu(68), max_trials=1000, until="plateau"))
    assert "the search stopped: the next minute was expected to gain less than 1 %" in job.info.notes
    assert 64 <= job.progress.trials < 1000
    again = tuned(job.resubmit(seed=1))
    assert ([task.answered_from for task in again.tasks], again.progress.trials) == (["database"], 0)


def test_device_time_ends_a_search(client: Client) -> None:
    job = tuned(client.submit(product_relu(76), max_trials=1000, max_device_seconds=0.5))
    assert "the search stopped: its time in measuring slots was used" in job.info.notes
    assert 0 < job.progress.trials < 1000


def test_a_model_whose_timing_takes_longer_than_the_job_may_is_not_timed(
    service: PlayedService, client: Client
) -> None:
    with service.stage.models_held():
        job = tuned(client.submit(mlp(2, batch=5, width=12), max_trials=4, max_seconds=4.0))
    assert "not timed as one program: the time of the job was over" in job.info.notes
    assert job.info.model is not None
    assert job.info.model.measured_us is None
    assert all(task.certified for task in job.tasks)


def test_a_search_that_ends_while_its_twin_is_about_to_start_is_not_repeated(
    service: PlayedService, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []
    start = Tasks.try_start

    def late(*arguments: Any) -> bool:
        """The second job's look for an answer is over when the first one ends."""
        if jobs:
            wait_for("the first job", lambda: jobs[0].refresh().state == "succeeded")
        return start(*arguments)

    monkeypatch.setattr(Tasks, "try_start", late)
    with service.stage.held(after=1):
        first = client.submit(product_relu(84), max_trials=4)
        wait_for("a trial", lambda: first.refresh().progress.trials > 0)
        jobs.append(first)
        second = client.submit(product_relu(84), max_trials=4)
        wait_for("the second job", lambda: second.refresh().state == "running")
    second.wait(progress=False)
    assert ([task.answered_from for task in second.tasks], second.progress.trials) == (["database"], 0)


def test_events_resume_where_they_were_left(client: Client, product: Job) -> None:
    events = list(product.events())
    assert [event.data["state"] for event in events if event.type == "job"] == ["queued", "running", "succeeded"]
    trials = [event for event in events if event.type == "trial"]
    assert {event.data["number"] for event in trials} == set(range(product.info.budget.max_trials + 1))
    middle = len(events) // 2
    assert list(client.job(product.id).events(after=events[middle].id)) == events[middle + 1 :]


def test_trials_are_the_ledger(product: Job) -> None:
    trials = list(product.trials())
    assert [trial.number for trial in trials] == list(range(product.info.budget.max_trials + 1))
    assert trials[0].origin == "baseline"
    assert all(trial.median_us or trial.failure_kind for trial in trials)


def test_a_space_of_ones_own_is_searched(client: Client) -> None:
    job = tuned(client.submit(product_relu(80), space=schedule_mm_relu, max_trials=6, name="own space"))
    [task] = job.tasks
    # The space has ten programs, so that the search may meet one twice before it has met six.
    assert task.answered_from == "search"
    assert 0 < task.trials <= 6
    measured = [trial for trial in job.trials() if trial.number > 0 and trial.state == "measured"]
    assert measured
    for trial in measured:
        record = client.record(trial.id)
        assert record.trace is not None
        names = [instruction[0] for instruction in record.trace[0]]
        # The function's own steps in its own order, its random choice decided anew for each candidate.
        own = ["SamplePerfectTile", "Split", "Parallel", "Split", "Reorder", "Vectorize"]
        assert [name for name in names if name in own][: len(own)] == own
        assert "T.vectorized(16)" in record.script_after
    assert len({str(client.record(trial.id).trace) for trial in measured}) == len(measured)


def test_the_service_returns_the_scheduled_module(product: Job) -> None:
    script = product.module().script()
    assert "T.parallel" in script or "T.vectorized" in script


def test_the_same_key_is_the_same_job(client: Client, product: Job) -> None:
    first = client.submit(MM_RELU, max_trials=16, idempotency_key="only-once")
    assert client.submit(MM_RELU, max_trials=16, idempotency_key="only-once").id == first.id
    with pytest.raises(loopwright.Conflict, match="Idempotency-Key"):
        client.submit(MM_RELU, max_trials=3, idempotency_key="only-once")
    assert tuned(first).tasks[0].answered_from == "database"
    assert client.submit(MM_RELU, max_trials=16, idempotency_key="only-once").id == first.id


def test_a_job_is_cancelled(service: PlayedService, client: Client) -> None:
    with service.stage.held(after=3):
        job = client.submit(product_relu(96), max_trials=2_000, name="endless")
        wait_for("a trial", lambda: job.refresh().progress.trials > 0)
        with pytest.raises(loopwright.WaitTimedOut):
            job.wait(progress=False, timeout=0.2)
        job.cancel()
        assert job.wait(progress=False, timeout=60).state == "cancelled"
    assert job.cancel().state == "cancelled"
    assert 0 < job.progress.trials <= 3
    assert job.id in [listed.id for listed in client.jobs()]


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"model": "import os\n"}, "is not accepted"),
        ({"model": '{"format": "none of TVM\'s"}'}, "save_json"),
        ({"model": MM_RELU, "target": "abacus"}, "abacus"),
        ({"model": MM_RELU, "target": "cuda"}, "Use 'auto', add a machine"),
        ({"model": MM_RELU, "space": [[[["NoSuchStep", [], [], []]], []]]}, "space"),
    ],
)
def test_a_refusal_says_what_to_do(client: Client, wrong: dict[str, Any], advice: str) -> None:
    known = len(list(client.jobs()))
    with pytest.raises(loopwright.InvalidRequest) as refused:
        client.submit(**wrong)
    assert advice in refused.value.detail
    assert len(list(client.jobs())) == known


@pytest.mark.usefixtures("on_the_same_machine")
def test_the_service_of_this_machine_is_found(service: ServiceClient, product: Job) -> None:
    with Client() as found:
        assert found.url == service.url
        assert found.job(product.id).state == "succeeded"
        assert found.version().api == "v1"
