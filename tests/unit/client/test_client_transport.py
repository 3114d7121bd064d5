"""Calls over a real socket: retries, refusals, pages, and what is sent."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import loopwright
from loopwright.errors import (
    Conflict,
    CouldNotReach,
    InvalidRequest,
    NotFound,
    ServiceError,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
    UnexpectedAnswer,
)
from loopwright.service_bests import KnownRecords, ServiceBests
from loopwright.session.config import Endpoint
from loopwright.session.transport import ATTEMPTS, Transport
from tests.unit.client.fake_service import Answer, FakeService, best_json, job_json, lookup, page, problem

LOOKUP = "/api/v1/workloads/lookup"
SCRIPT = "@T.prim_func\ndef main(): ...\n"


def test_the_token_is_sent(service: FakeService, client: loopwright.Client) -> None:
    service.on("GET", "/api/v1/jobs/job-1", job_json())
    assert client.job("job-1").state == "queued"
    assert service.requests[0].headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("trouble", [Answer(hang_up=True), problem(503, "Unavailable", "starting")])
def test_a_get_is_tried_again(service: FakeService, client: loopwright.Client, trouble: Answer) -> None:
    service.on("GET", "/api/v1/jobs/job-1", [trouble, trouble, Answer(job_json("running"))])
    assert client.job("job-1").state == "running"
    assert len(service.requests) == 3


def test_an_answer_that_is_the_same_is_not_sent_again(service: FakeService, client: loopwright.Client) -> None:
    first, second = {"ETag": '"1"'}, {"ETag": '"2"'}
    answers = [
        *(Answer(job_json(), headers=first), Answer(b"", 304, first), Answer(b"", 304, first)),
        *(Answer(job_json("running"), headers=second), Answer(b"", 304, second)),
    ]
    service.on("GET", "/api/v1/jobs/job-1", answers)
    assert [client.job("job-1").state for _ in answers] == ["queued"] * 3 + ["running"] * 2
    tags = [request.headers.get("if-none-match") for request in service.requests]
    assert tags == [None, '"1"', '"1"', '"1"', '"2"']


def test_the_tag_of_one_answer_is_not_sent_for_another(service: FakeService, client: loopwright.Client) -> None:
    service.on("GET", "/api/v1/jobs/job-1", [Answer(job_json(), headers={"ETag": '"1"'}), Answer(job_json())])
    service.on("GET", "/api/v1/jobs/job-2", job_json())
    assert client.job("job-1").info == client.job("job-2").info
    client.job("job-1")
    client.job("job-1")
    assert [request.headers.get("if-none-match") for request in service.requests] == [None, None, '"1"', '"1"']


def test_submit_is_tried_again_under_one_idempotency_key(service: FakeService, client: loopwright.Client) -> None:
    service.on("POST", "/api/v1/jobs", [Answer(hang_up=True), Answer(job_json(), 202)])
    limits: dict[str, Any] = {
        "max_trials": 8,
        "max_seconds": 5,
        "max_device_seconds": 3,
        "target_latency_us": 120,
        "until": "plateau",
    }
    job = client.submit(SCRIPT, {"kind": "llvm"}, **limits, shapes={"n": 4}, seed=3, name="mm", labels={"rack": "a"})
    first, second = service.seen("POST", "/api/v1/jobs")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert job.id == "job-1"
    assert second.json() == {
        "module": {"format": "tvmscript", "data": SCRIPT},
        "target": {"kind": "llvm"},
        "targets": None,
        "name": "mm",
        "seed": 3,
        "priority": 0,
        "visibility": "team",
        "budget": limits,
        "seconds_per_function": None,
        "space": None,
        "shapes": {"n": 4},
        "force": False,
        "exact_math": False,
        "math": "fp32",
        "gate": None,
        "labels": {"rack": "a"},
        "tags": [],
        "description": "",
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_trials": -1}, r"budget\.max_trials: should be greater than or equal to 1, and is -1"),
        ({"max_trials": 10_000_000}, r"budget\.max_trials: should be less than or equal to 1000000"),
        ({"math": "fp16"}, r"math: should be 'fp32' or 'tf32'"),
        ({"until": "dawn"}, r"budget\.until: should be 'plateau'"),
        ({"target_latency_us": 0}, r"budget\.target_latency_us: should be greater than 0, and is 0"),
        ({"priority": 101}, r"priority: should be less than or equal to 100, and is 101"),
        ({"name": "x" * 1000}, r"name: .* at most 200 characters, and is 'x+\.\.\.x+'"),
    ],
)
def test_options_out_of_bounds_are_named_and_not_sent(
    service: FakeService, client: loopwright.Client, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{said}"):
        client.submit(SCRIPT, **options)
    assert service.requests == []


def test_extents_may_be_integers_of_other_libraries(service: FakeService, client: loopwright.Client) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    one: Any
    for one in ({"n": np.int64(4)}, [{"n": np.uint8(4)}, {"n": 8}]):
        client.submit(SCRIPT, shapes=one)
    assert [request.json()["shapes"] for request in service.requests] == [{"n": 4}, [{"n": 4}, {"n": 8}]]
    with pytest.raises(TypeError, match="whole number"):
        client.submit(SCRIPT, shapes=cast(Any, {"n": "four"}))


def test_two_submissions_have_two_keys_unless_one_is_given(service: FakeService, client: loopwright.Client) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    for key in (None, None, "mine"):
        client.submit(SCRIPT, idempotency_key=key)
    keys = [request.headers["idempotency-key"] for request in service.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Unauthorized),
        (403, Unauthorized),
        (404, NotFound),
        (409, Conflict),
        (413, InvalidRequest),
        (418, ServiceError),
        (422, InvalidRequest),
        (429, TooManyRequests),
        (500, ServiceUnavailable),
    ],
)
def test_a_problem_becomes_a_typed_error(
    service: FakeService, client: loopwright.Client, status: int, kind: type[ServiceError]
) -> None:
    service.on("POST", "/api/v1/jobs", problem(status, "No", "because"))
    with pytest.raises(kind) as caught:
        client.submit(SCRIPT)
    assert type(caught.value) is kind
    assert (caught.value.title, caught.value.detail, caught.value.status) == ("No", "because", status)
    assert "because" in str(caught.value)


def test_a_refusal_that_will_not_pass_is_not_tried_again(service: FakeService, client: loopwright.Client) -> None:
    service.on("POST", "/api/v1/jobs", problem(422, "No", "because"))
    with pytest.raises(InvalidRequest):
        client.submit(SCRIPT)
    assert len(service.requests) == 1


def test_an_error_page_of_a_proxy_is_readable(service: FakeService, client: loopwright.Client) -> None:
    service.on("GET", "/api/v1/jobs/job-1", Answer(b"<h1>gateway down</h1>", 502))
    with pytest.raises(ServiceUnavailable, match="gateway down"):
        client.job("job-1")
    assert len(service.requests) == ATTEMPTS


def test_an_answer_of_something_else_is_told_apart(service: FakeService, client: loopwright.Client) -> None:
    service.on("GET", "/api/v1/jobs/job-1", Answer(b"<h1>welcome</h1>"))
    with pytest.raises(UnexpectedAnswer, match="not a Job"):
        client.job("job-1")


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with loopwright.Client(f"http://127.0.0.1:{port}") as client, pytest.raises(CouldNotReach, match=str(port)):
        client.job("job-1")


def test_lists_run_over_all_pages(service: FakeService, client: loopwright.Client) -> None:
    pages = {None: page(job_json(id="a"), job_json(id="b"), token="next"), "next": page(job_json(id="c"))}
    service.on("GET", "/api/v1/jobs", lambda request: Answer(pages[request.query.get("page_token")]))
    assert [job.id for job in client.jobs()] == ["a", "b", "c"]


def test_fields_of_a_newer_service_are_passed_over(service: FakeService, client: loopwright.Client) -> None:
    service.on("GET", "/api/v1/jobs/job-1", job_json(mood="good"))
    service.on("GET", "/api/v1/jobs", page(job_json(mood="good")))
    assert client.job("job-1").id == next(client.jobs()).id


def test_a_workload_without_a_best_has_none(service: FakeService, client: loopwright.Client) -> None:
    assert client.best("0" * 32, {"kind": "llvm", "num-cores": 2}) is None
    assert service.requests[0].query == {"target": '{"kind": "llvm", "num-cores": 2}'}


def test_records_make_the_round_trip(service: FakeService, client: loopwright.Client, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "database_workload.json").write_text("[1]\n")
    (source / "database_tuning_record.json").write_text("[2]\n")
    report = {"workloads": 1, "imported": 1, "duplicates": 0, "errors": []}
    service.on("POST", "/api/v1/records/import", report)
    assert client.import_records(source).imported == 1
    sent = service.requests[0]
    assert sent.headers["content-type"] == "application/x-tar"

    service.on("GET", "/api/v1/records/export", Answer(sent.body))
    target = client.export_records(tmp_path / "made" / "here")
    assert {file.name: file.read_text() for file in target.iterdir()} == {
        "database_workload.json": "[1]\n",
        "database_tuning_record.json": "[2]\n",
    }


def test_half_a_pair_is_not_sent(service: FakeService, client: loopwright.Client, tmp_path: Path) -> None:
    (tmp_path / "database_workload.json").write_text("[1]\n")
    with pytest.raises(FileNotFoundError, match="database_tuning_record"):
        client.import_records(tmp_path)
    assert service.requests == []


RECORDS = KnownRecords({"kind": "llvm"}, {"0" * 32: "record-1"})


def test_records_are_asked_for_by_one_request(service: FakeService) -> None:
    service.on("POST", f"{LOOKUP}/records", {"target": RECORDS.target, "records": RECORDS.records})
    assert known_records(service) == RECORDS
    [request] = service.requests
    assert request.headers["authorization"] == "Bearer secret"
    assert request.json() == {"functions": ["0" * 32], "target": "auto", "imported": True}


@pytest.mark.parametrize(
    "answer",
    [
        problem(404, "Not found", "an earlier version"),
        problem(422, "Unprocessable", "no"),
        Answer(b"<html>", 200),
        Answer([1], 200),
        Answer({"target": {}}, 200),
        Answer(b"", 307, {"Location": "/api/v1/elsewhere"}),
        Answer(b"", 302, {"Location": "/api/v1/elsewhere"}),
    ],
)
def test_what_is_no_answer_is_asked_for_in_full(service: FakeService, answer: Answer) -> None:
    service.on("POST", f"{LOOKUP}/records", answer)
    best = best_json("0" * 32, None, target=RECORDS.target)
    service.on("POST", LOOKUP, lookup(best, auto=dict(RECORDS.target)))
    assert known_records(service) == RECORDS
    assert [request.path for request in service.requests] == [f"{LOOKUP}/records", LOOKUP]


def test_what_the_service_refuses_in_full_is_said(service: FakeService) -> None:
    service.on("POST", LOOKUP, problem(401, "Unauthorized", "no token"))
    with pytest.raises(Unauthorized, match="no token"):
        known_records(service)


def test_a_service_that_does_not_answer_is_asked_once(service: FakeService) -> None:
    service.on("POST", f"{LOOKUP}/records", Answer(hang_up=True))
    with pytest.raises(CouldNotReach, match=service.url):
        known_records(service)
    assert len(service.requests) == 1


def known_records(service: FakeService) -> KnownRecords:
    with contextlib.closing(Transport(Endpoint(service.url, "secret"))) as transport:
        return ServiceBests(transport).records(["0" * 32], "auto", is_instant=True)
