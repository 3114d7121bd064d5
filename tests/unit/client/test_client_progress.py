"""What the progress view says of a job."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from loopwright import schemas
from loopwright.jobs.progress import ProgressView
from tests.unit.client.fake_service import job_json


def shown(state: str, trials: int, total: int, tasks: list[dict[str, object]]) -> str:
    progress = {"trials": trials, "failed": 0, "total": total, "time_left_s": None}
    body = job_json(state) | {"progress": progress, "tasks": tasks}
    text = io.StringIO()
    with ProgressView(True, Console(file=text, force_terminal=True, width=120, color_system=None)) as view:
        view.show(schemas.Job.model_validate(body))
    return text.getvalue()


@pytest.fixture
def task() -> dict[str, object]:
    return {
        "workload_hash": "w0",
        "name": "matmul",
        "weight": 1,
        "state": "succeeded",
        "trials": 0,
        "baseline_us": 90.0,
        "best_us": 45.0,
        "speedup": 2.0,
        "certified": True,
        "answered_from": "database",
        "record_id": "r0",
        "failures": {},
        "error": None,
        "model_share": 1.0,
        "budget_share": None,
        "library": None,
    }


def test_a_running_job_counts_towards_its_budget() -> None:
    assert "3/64" in shown("running", 3, 64, [])


def test_an_answer_from_the_database_is_no_empty_bar(task: dict[str, object]) -> None:
    text = shown("succeeded", 0, 64, [task])
    assert "0/64" not in text
    assert "45.0 µs (2.0x), certified, from the database" in text


def test_a_log_ends_with_a_whole_line(task: dict[str, object]) -> None:
    text = io.StringIO()
    with ProgressView(True, Console(file=text, force_terminal=False, width=120)) as view:
        view.show(schemas.Job.model_validate(job_json("succeeded") | {"tasks": [task]}))
    assert text.getvalue().endswith("database\n")
