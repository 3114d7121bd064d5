"""Functions are named, and found, by where models call them; by whoever sees the job of the model."""

from __future__ import annotations

import pytest

from db.access.views import Quota
from db.access.visibility import Viewer
from db.results.best_schedules import BestScheduleQuery
from db.states import Scope
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World

ADA, BOB = Viewer("ada"), Viewer("bob")
NOTHING: tuple[int, list[str], list[str], list[str]] = (0, [], [], [])


def found(world: World, text: str, viewer: Viewer = ADA) -> tuple[int, list[str], list[str], list[str]]:
    """Return what a search finds: the number of bests, their workloads, those of records, and the names of jobs."""
    db = world.db.seen_by(viewer)
    rows, total = db.best_schedules.page(BestScheduleQuery(text))
    records, jobs = db.records.page(search=text), db.jobs.page(search=text)
    bests = [row.workload_hash for row in rows]
    return total, bests, [each.workload_hash for each in records.items], [job.name for job in jobs.items]


@pytest.mark.parametrize("text", ["encoder.0", "ENCODER.1.fc", "encoder.{0,1}.fc", "conv_1x1/é"])
def test_bests_records_and_jobs_are_found_by_where_a_model_calls_a_function(world: World, text: str) -> None:
    world.measured(hash="a", name="mine", sources=("encoder.0.fc", "encoder.1.fc", "conv_1x1/é"))
    world.measured(hash="b", name="another", sources=("head",))
    assert found(world, text) == (1, ["a"], ["a"], ["mine"])


@pytest.mark.parametrize("text", ["encoder_0", "%", "[", '"', "encoder.0.fc.weight", "!"])
def test_what_is_no_part_of_a_place_finds_nothing(world: World, text: str) -> None:
    world.measured(hash="a", name="mine", sources=("encoder.0.fc",))
    world.measured(hash="b", name="another")
    assert found(world, text) == NOTHING


def test_a_place_in_a_private_model_is_told_to_nobody_else(world: World) -> None:
    for user in ("ada", "bob"):
        world.db.users.create(user, Scope.SUBMIT, Quota())
    _, certificate = world.measured(0.5, hash="a", name="hers", sources=("vault.fc",), user_name="ada", private=True)
    world.job("a", name="shared")  # now everybody has the function
    job = world.job(rechecks=((certificate, "a user asked"),))

    def told(viewer: Viewer) -> set[tuple[str, ...]]:
        db = world.db.seen_by(viewer)
        best = db.certificates.best("a", world.device_class.id)
        assert best is not None
        listed, rechecked = db.certificates.bests().items, db.rechecks.of_job(job.id)
        return {best.sources, *(each.sources for each in listed), *(each.sources for each in rechecked)}

    total, bests, records, jobs = found(world, "vault")
    assert (total, bests, set(records), jobs) == (1, ["a"], {"a"}, ["hers"])
    assert found(world, "vault", BOB) == NOTHING
    assert (told(ADA), told(BOB)) == ({("vault.fc",)}, {()})


def test_a_job_that_was_cancelled_is_found_all_the_same(world: World) -> None:
    job = world.job("a", name="mine", sources=("encoder.0.fc",))
    assert world.db.jobs.request_cancel(job.id).state is JobState.CANCELLED
    assert found(world, "encoder.0") == (0, [], [], ["mine"])
