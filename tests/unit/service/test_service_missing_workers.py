"""A controller says once that a worker is not seen any more, and only if it would have seen it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from service.fleet.watch import LOST_SECONDS, Watch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("service.fleet.watch.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def database(missing: list[str]) -> Mock:
    found = Mock()
    found.workers.missing.side_effect = lambda *_: list(missing)
    found.workers.checks_after.return_value = (0, {})
    found.workers.standings.return_value = {}
    return found


def told(db: Mock) -> list[Any]:
    return [call.args[0] for call in db.workers.tell_missing.call_args_list]


def test_a_missing_worker_is_told_once_each_time(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    missing = ["host/cpu"]
    db = database(missing)
    watching = Watch(db, Mock())
    watching.beat([])
    assert told(db) == []  # it may have been seen by nobody while no controller was there
    clock[0] += LOST_SECONDS + 1
    for _ in range(3):
        watching.beat([])
    assert told(db) == ["host/cpu"]
    (record,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert record.__dict__["worker"] == "host/cpu"
    missing.clear()
    watching.beat([])
    missing.append("host/cpu")
    watching.beat([])
    assert told(db) == ["host/cpu"] * 2
