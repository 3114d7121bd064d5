"""A run of a job names the job in every line that it writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from service.controller.observed_run import observed
from service.logs.ids import known


class _Runner:
    _db = None

    @observed
    def run(self, claimed: Any, place: str) -> tuple[str, str]:
        return known()["job"], place


def test_lines_of_a_run_name_its_job() -> None:
    claimed: Any = SimpleNamespace(job=SimpleNamespace(id="j1"))
    assert _Runner().run(claimed, "here") == ("j1", "here")
    assert known() == {}
