"""What is traced: requests by their routes, in their callers' traces, and runs of jobs with their tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from db import Database, migrate
from service.app import create_app
from service.problems import ProblemError
from service.settings import Settings
from service.traces import tracer
from service.traces.runs import run_span
from tests.integration.service.conftest import OWNER, settings_in
from tests.support import played_fleet
from tests.support.programs import product

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture(scope="module")
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer.use(provider)
    yield exporter
    tracer.use(None)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="module")
def http(settings: Settings, exporter: InMemorySpanExporter) -> Iterator[TestClient]:
    migrate.upgrade(settings.database)
    app = create_app(settings)
    with TestClient(app, base_url="http://service", raise_server_exceptions=False) as client:
        client.headers["Authorization"] = f"Bearer {OWNER}"
        yield client


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


@pytest.fixture(autouse=True)
def a_live_worker_and_an_empty_queue() -> None:
    """The shared application is not needed here."""


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.whole
def test_a_request_is_a_span_in_the_trace_of_its_caller(http: TestClient, spans: InMemorySpanExporter) -> None:
    http.get("/api/v1/jobs/none", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "X-Request-Id": "r1"})
    (span,) = spans.get_finished_spans()
    assert span.name == "GET /api/v1/jobs/{job_id}"
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.kind.name == "SERVER"
    assert facts(span) == {
        "http.request.method": "GET",
        "http.route": "/api/v1/jobs/{job_id}",
        "http.response.status_code": 404,
        "loopwright.request_id": "r1",
    }


def test_an_error_of_the_service_is_in_its_span(
    http: TestClient, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("db.jobs.jobs.Jobs.leases", fail)
    assert http.get("/api/v1/leases").status_code == 500
    (span,) = spans.get_finished_spans()
    assert span.status.status_code.name == "ERROR"
    assert [event.name for event in span.events] == ["exception"]


def test_probes_are_not_traced(http: TestClient, spans: InMemorySpanExporter) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        http.get(path)
    assert spans.get_finished_spans() == ()


def test_an_answer_from_500_is_an_error(
    http: TestClient, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: object) -> None:
        raise ProblemError(503, "busy", "Try again.")

    monkeypatch.setattr("db.jobs.jobs.Jobs.leases", busy)
    assert http.get("/api/v1/leases").status_code == 503
    (span,) = spans.get_finished_spans()
    assert span.status.status_code.name == "ERROR"


def test_a_run_of_a_job_is_a_span_with_one_for_each_task(
    http: TestClient, settings: Settings, spans: InMemorySpanExporter
) -> None:
    database = Database(settings.database)
    try:
        played_fleet.join(database)
        body = {"module": {"format": "tvmscript", "data": product(16)}, "budget": {"max_trials": 20}}
        job_id = http.post("/api/v1/jobs", json=body).json()["id"]
        spans.clear()
        job = database.jobs.get(job_id)
        with run_span(database, job):
            played_fleet.play(database, job_id)
        found: Sequence[ReadableSpan] = spans.get_finished_spans()
    finally:
        database.close()
    task, run = found
    assert (task.name, run.name) == ("task", "job")
    assert task.parent is not None
    assert task.parent.span_id == run.context.span_id
    assert facts(run)["loopwright.job_id"] == job_id
    assert facts(task)["loopwright.state"] == "succeeded"
    assert facts(task)["loopwright.trials"] == 20
    assert task.start_time is not None
    assert task.end_time is not None
    assert task.start_time < task.end_time


def test_a_trace_that_cannot_be_completed_does_not_fail_the_run(
    http: TestClient,
    settings: Settings,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away(*_: object) -> None:
        raise ConnectionError("the database is away")

    database = Database(settings.database)
    try:
        played_fleet.join(database)
        body = {"module": {"format": "tvmscript", "data": product(17)}, "budget": {"max_trials": 20}}
        job = database.jobs.get(http.post("/api/v1/jobs", json=body).json()["id"])
        assert http.post(f"/api/v1/jobs/{job.id}/cancel").json()["state"] == "cancelled"  # no other test is to claim it
        spans.clear()
        monkeypatch.setattr("db.jobs.tasks.Tasks.of_job", away)
        with run_span(database, job):
            pass
    finally:
        database.close()
    assert [span.name for span in spans.get_finished_spans()] == ["job"]
    assert "lacks its tasks" in caplog.text


def test_a_run_is_no_span_where_nothing_is_traced(spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_tracer", None)
    with run_span(None, None):  # type: ignore[arg-type]
        pass
    assert spans.get_finished_spans() == ()
