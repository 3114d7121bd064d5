"""Records as TVM's JSON pair: sent while they are made, whatever else the service has to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from db.exchange.json_pair import unpack
from service.context import Context
from service.problems import ProblemError
from service.records import exchange
from tests.integration.service.conftest import Api
from tests.support import played_fleet
from tests.support.programs import product


@pytest.fixture(scope="module")
def exported(api: Api, job: dict[str, Any]) -> list[dict[str, Any]]:
    """All bests of the shared application: at least three, of a product each."""
    assert job
    for rows in (40, 100):
        played_fleet.join(api.database)
        made = api.submit(product(rows, 40), name="another product", budget={"max_trials": 20})
        played_fleet.play(api.database, made["id"])
    found: list[dict[str, Any]] = api.get("/bests", page_size=500)["items"]
    assert len(found) >= 3
    return found


@pytest.fixture
def context(api: Api, monkeypatch: pytest.MonkeyPatch) -> Context:
    """The service's, where a part of an export is one workload."""
    monkeypatch.setattr(exchange, "_WORKLOADS_A_CALL", 1)
    monkeypatch.setattr(exchange, "_AGAIN_SECONDS", 0.0)
    context: Context = api.http.app.state.context  # type: ignore[attr-defined]
    return context


def lines(data: bytes) -> tuple[list[Any], list[Any]]:
    workloads, records = unpack(data)
    return [json.loads(line) for line in workloads.splitlines()], [json.loads(line) for line in records.splitlines()]


@pytest.mark.parametrize("at_once", [1, 2, 50])
def test_all_bests_are_exported(
    api: Api, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(exchange, "_WORKLOADS_A_CALL", at_once)
    answer = api.http.get("/api/v1/records/export", headers=api.headers)
    assert answer.status_code == 200
    workloads, records = lines(answer.content)
    assert len(workloads) == len(exported)
    assert [position for position, _ in records] == list(range(len(exported)))
    assert sorted(min(fields[1]) for _, fields in records) == sorted(
        min(best["certificate"]["best_run_secs"]) for best in exported
    )


def test_the_bests_of_another_target_are_not_exported(api: Api, exported: list[dict[str, Any]]) -> None:
    data = b"".join(exchange.export(api.http.app.state.context, "another"))  # type: ignore[attr-defined]
    assert exported
    assert lines(data) == ([], [])


def test_all_measured_records_of_a_job_are_exported(api: Api, job: dict[str, Any]) -> None:
    answer = api.http.get(f"/api/v1/jobs/{job['id']}/records", headers=api.headers)
    workloads, records = lines(answer.content)
    assert (len(workloads), len(records)) == (1, job["progress"]["trials"] - job["progress"]["failed"])


def test_the_first_part_is_sent_before_the_next_is_made(
    context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(context, monkeypatch)
    parts = exchange.export(context, None)
    assert len(next(parts)) == 512
    first = next(parts)
    assert calls == [0]
    assert first.startswith(b'["')
    rest = b"".join(parts)
    assert calls == list(range(len(exported)))
    assert rest


def test_an_export_that_has_begun_waits_for_a_busy_service(
    context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(context, monkeypatch, refused={1: 503, 2: 429})
    workloads, _ = lines(b"".join(exchange.export(context, None)))
    assert len(workloads) == len(exported)


def test_an_export_that_cannot_begin_is_refused(
    api: Api, context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exported
    counted(context, monkeypatch, refused={0: 503})
    assert api.http.get("/api/v1/records/export", headers=api.headers).status_code == 503


@pytest.mark.whole
def test_an_export_that_fails_in_the_middle_breaks_off(
    context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exported
    counted(context, monkeypatch, refused={1: 500})
    parts = exchange.export(context, None)
    next(parts)
    with pytest.raises(ProblemError):
        list(parts)


def counted(context: Context, monkeypatch: pytest.MonkeyPatch, refused: dict[int, int] | None = None) -> list[int]:
    """Return the list of calls of the sandbox that are made from now on; calls of some numbers are refused once."""
    calls: list[int] = []
    export, left = context.sandbox.export, dict(refused or {})

    def call(modules: Any, records: Any, first: int) -> Any:
        if first in left:
            raise ProblemError(left.pop(first), "busy", "Too much at once.")
        calls.append(first)
        return export(modules, records, first)

    monkeypatch.setattr(context.sandbox, "export", call)
    return calls
