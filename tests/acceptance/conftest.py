"""The main job, which several tests read: a real search, measured, raced and certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance.main_job import MM_RELU
from tests.support.service import Service


@dataclass(frozen=True, slots=True)
class Followed:
    """A finished job, and its events as a follower heard them that was cut off again and again."""

    job: dict[str, Any]
    heard: list[dict[str, Any]]

    @property
    def task(self) -> dict[str, Any]:
        """Its only one."""
        [task] = self.job["tasks"]
        found: dict[str, Any] = task
        return found


@pytest.fixture(scope="session")
def service(real_service: Service) -> Service:
    """The service whose jobs are searched and measured."""
    return real_service


@pytest.fixture(scope="session")
def main(service: Service) -> Followed:
    """The main job on SQLite. No other test tunes its program."""
    job_id = service.submit(MM_RELU, trials=16, name="mm_relu")
    heard = service.events(job_id, most=1)
    while rest := service.events(job_id, after=heard[-1]["id"], most=3):
        heard += rest
    return Followed(service.job(job_id), heard)
