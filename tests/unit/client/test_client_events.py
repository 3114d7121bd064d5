"""Server-sent events: the format, resuming, and waiting for a job."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

import loopwright
from loopwright.errors import CouldNotReach, Unauthorized, WaitTimedOut
from loopwright.jobs import job as job_module
from loopwright.session.server_sent_events import ServerSentEvent, read_events
from tests.unit.client.fake_service import Answer, FakeService, Request, job_json, problem

STREAM = {"Content-Type": "text/event-stream"}
EVENTS = "/api/v1/jobs/job-1/events"


def sse(identifier: int, kind: str, data: dict[str, Any]) -> bytes:
    return f"id: {identifier}\r\nevent: {kind}\r\ndata: {json.dumps(data)}\r\n\r\n".encode()


HISTORY: list[tuple[int, str, dict[str, Any]]] = [
    (1, "job", {"state": "running", "error": None}),
    (2, "trial", {"id": "t1", "median_us": 12.5}),
    (3, "task", {"workload_hash": "0" * 32, "best_us": 12.5}),
    (4, "job", {"state": "succeeded", "error": None}),
]


@pytest.fixture
def job(service: FakeService, client: loopwright.Client) -> loopwright.Job:
    service.on("GET", "/api/v1/jobs/job-1", job_json("running"))
    return client.job("job-1")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_format_is_read_however_it_is_cut(size: int) -> None:
    raw = ': ping\r\n\r\nid: 7\ndata: a\ndata: b\n\nevent: x\nid\ndata:{"k": "\u2028é"}\n\ndata: cut off'.encode()
    chunks = [raw[i : i + size] for i in range(0, len(raw), size)]
    assert list(read_events(chunks)) == [
        ServerSentEvent("7", "message", "a\nb"),
        ServerSentEvent("", "x", '{"k": "\u2028é"}'),
    ]


def test_a_broken_stream_is_resumed_after_the_last_event(service: FakeService, job: loopwright.Job) -> None:
    def stream(request: Request) -> Answer:
        last = int(request.headers.get("last-event-id", 0))
        # Two events a connection, the second of the first connection cut in the middle.
        raw = b"".join(sse(*event) for event in HISTORY[last : last + 2])
        if last == 1 and len(service.seen("GET", EVENTS)) == 2:
            return problem(503, "Unavailable", "starting")
        return Answer(raw[:-5] if last == 0 else raw, headers=STREAM)

    service.on("GET", EVENTS, stream)
    events = list(job.events())
    assert [(event.id, event.type, event.data) for event in events] == HISTORY
    assert [request.headers.get("last-event-id") for request in service.seen("GET", EVENTS)] == [None, "1", "1", "3"]


def test_a_stream_that_has_to_wait_for_its_turn_is_tried_again(service: FakeService, job: loopwright.Job) -> None:
    refusal = problem(429, "Too many requests", "One user may have 20 event streams at a time")
    stream = Answer(b"".join(sse(*event) for event in HISTORY), headers=STREAM)
    service.on("GET", EVENTS, [refusal, refusal, stream])
    assert [event.id for event in job.events()] == [1, 2, 3, 4]


def test_events_start_after_the_given_one(service: FakeService, job: loopwright.Job) -> None:
    service.on("GET", EVENTS, Answer(sse(*HISTORY[3]), headers=STREAM))
    assert [event.id for event in job.events(after=3)] == [4]
    assert service.seen("GET", EVENTS)[0].headers["last-event-id"] == "3"


def test_a_stream_that_never_brings_anything_is_given_up(service: FakeService, job: loopwright.Job) -> None:
    service.on("GET", EVENTS, Answer(b": ping\n\n", headers=STREAM))
    with pytest.raises(CouldNotReach, match="keeps ending"):
        list(job.events())


def test_wait_draws_and_ends_with_the_job(service: FakeService, job: loopwright.Job) -> None:
    service.on("GET", EVENTS, Answer(b"".join(sse(*event) for event in HISTORY), headers=STREAM))
    service.on("GET", "/api/v1/jobs/job-1", [Answer(job_json("running")), Answer(job_json("succeeded"))])
    output = io.StringIO()
    assert job.wait(console=Console(file=output, force_terminal=True, width=120)) is job
    assert job.state == "succeeded"
    assert "succeeded, 1 failed" in output.getvalue()
    assert "10.0 µs (10x), certified" in output.getvalue()


def test_wait_without_progress_draws_nothing(
    service: FakeService, job: loopwright.Job, capsys: pytest.CaptureFixture[str]
) -> None:
    service.on("GET", "/api/v1/jobs/job-1", job_json("failed", error="all candidates failed"))
    job.wait(progress=False)
    assert (job.state, job.error) == ("failed", "all candidates failed")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("refusal", [problem(404, "Not found", "no events"), problem(500, "Broken", "oh")])
def test_wait_goes_by_the_clock_where_there_is_no_stream(
    service: FakeService, job: loopwright.Job, refusal: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "POLL", 0.01)
    service.on("GET", EVENTS, refusal)
    states = ["running", "running", "running", "cancelled"]
    service.on("GET", "/api/v1/jobs/job-1", [Answer(job_json(state)) for state in states])
    assert job.wait(progress=False).state == "cancelled"


def test_wait_does_not_go_on_without_permission(service: FakeService, job: loopwright.Job) -> None:
    service.on("GET", EVENTS, problem(401, "Unauthorized", "token revoked"))
    with pytest.raises(Unauthorized):
        job.wait(progress=False)


def test_wait_ends_when_the_time_is_over(service: FakeService, job: loopwright.Job) -> None:
    with pytest.raises(WaitTimedOut, match=r"0\.05"):
        job.wait(progress=False, timeout=0.05)
    assert job.state == "running"


def test_cancel_takes_over_the_answer(service: FakeService, job: loopwright.Job) -> None:
    service.on("POST", "/api/v1/jobs/job-1/cancel", Answer(job_json("cancelled"), 202))
    assert job.cancel().state == "cancelled"
    assert job.finished
