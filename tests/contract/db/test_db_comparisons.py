"""Comparisons with other engines: one a job, the latest."""

from __future__ import annotations

from tests.contract.db.conftest import World


def test_the_latest_comparison_of_a_job_is_kept(world: World) -> None:
    job, other = world.job("w-1"), world.job("w-2")
    assert world.db.comparisons.of_job(job.id) is None
    world.db.comparisons.put(job.id, "owner", {"machine": "one", "engines": [1.5, None]})
    latest = world.db.comparisons.put(job.id, "owner", {"machine": "two", "engines": []})
    assert world.db.comparisons.of_job(job.id) == latest
    assert (latest.user_name, latest.result) == ("owner", {"machine": "two", "engines": []})
    assert world.db.comparisons.of_job(other.id) is None
