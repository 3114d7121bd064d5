"""The made-up databases of benchmarks follow the tables, and every question to them is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.calls.meter import Meter
from benchmarks.calls.queue import calls
from benchmarks.controllers.made_up import queue
from benchmarks.database.made_up import Size
from benchmarks.database.questions import questions
from benchmarks.database.seed import seed as seed_trials
from benchmarks.leaderboard.seed import seed as seed_leaderboard
from db.database import Database
from db.results.best_schedules import BestScheduleQuery


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'made-up.sqlite'}"


def test_the_leaderboard_is_read_as_any_other(url: str) -> None:
    seed_leaderboard(url, 60)
    database = Database(url)
    try:
        rows, total = database.best_schedules.page(BestScheduleQuery(sort="speedup"), limit=10)
        best = database.certificates.best(rows[0].workload_hash, rows[0].device_class_id)
    finally:
        database.close()
    assert total == 60
    assert best is not None
    interval = best.certificate.interval
    assert interval.value == rows[0].speedup
    assert interval.high is not None
    assert interval.low < interval.value < interval.high


@pytest.mark.whole
def test_the_questions_to_a_large_database_are_answered(url: str) -> None:
    size = Size.of(400)
    seed_trials(url, size)
    database = Database(url)
    try:
        answers = [question.ask() for question in questions(database, size)]
    finally:
        database.close()
    assert any(answers)


@pytest.mark.whole
def test_calls_beside_a_queue_leave_it_as_it_was(url: str) -> None:
    queue(url, 30)
    database = Database(url)
    try:
        figures = calls(database, Meter(url), 3)
        assert database.counts().jobs == {"queued": 33}
    finally:
        database.close()
    assert all(each["cpu_ms"] > 0 for each in figures.values())
