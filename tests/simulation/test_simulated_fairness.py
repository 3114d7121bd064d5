"""Several controllers share devices as one does: whoever is first is so wherever the job runs."""

from __future__ import annotations

import pytest

from db.jobs.jobs import QUEUED_AGAIN
from loopwright.codegen.kinds import JobState
from tests.simulation.files import Files
from tests.simulation.world import Scenario, World

DEVICES, LARGE = 4, 1_000
"""Of the fleet, and trials of each of the jobs that are there first."""
_HANDOVER_SECONDS = 2.0
"""Four turns: a device changes its controller within three, and the late job's search begins between two."""


def seconds_of_a_late_job(files: Files, controllers: int, *, priority: int, trials: int) -> float:
    """Return the seconds from the submission of a job to its end, beside as many large ones as controllers."""
    large = controllers
    scenario = Scenario(
        jobs=(*((f"large {number}",) for number in range(large)), ("late",)),
        trials=LARGE,
        cancelled=None,
        faults={},
        priorities=(*[0] * large, priority),
        pauses=(*[0.1] * large, 4.0),
        budgets=(*[LARGE] * large, trials),
    )
    world = World(7, files.emptied(), controllers, scenario=scenario, devices=DEVICES, places=2 * large)
    world.run(awaited=large)
    late = world.database.jobs.get(world.jobs[large].id)
    assert late.state is JobState.SUCCEEDED
    assert late.finished_at is not None
    assert not world.machines.overlaps, world.machines.overlaps
    return (late.finished_at - late.created_at).total_seconds()


@pytest.mark.parametrize(
    ("controllers", "priority", "trials"),
    [
        (2, 5, 40),
        pytest.param(2, 5, 200, marks=pytest.mark.whole),
        pytest.param(10, 5, 60, marks=pytest.mark.whole),
        pytest.param(3, 0, 60, marks=pytest.mark.whole),
        pytest.param(10, 0, 200, marks=pytest.mark.whole),
    ],
)
def test_who_is_first_is_so_over_controllers(files: Files, controllers: int, priority: int, trials: int) -> None:
    """By a higher priority, or by less that is left."""
    alone = seconds_of_a_late_job(files, 1, priority=priority, trials=trials)
    among = seconds_of_a_late_job(files, controllers, priority=priority, trials=trials)
    assert among <= alone + 2 * _HANDOVER_SECONDS  # once to begin, once for the closing race


@pytest.mark.parametrize(
    ("controllers", "seed"), [(3, 1), *(pytest.param(10, seed, marks=pytest.mark.whole) for seed in range(10))]
)
def test_one_job_of_the_lowest_priority_ends_its_turn_for_an_urgent_one(
    files: Files, controllers: int, seed: int
) -> None:
    """All places of all controllers are taken."""
    priorities = (*[5] * (controllers - 1), 1, 7)
    scenario = Scenario(
        jobs=tuple((f"job {number}",) for number in range(controllers + 1)),
        trials=LARGE,
        cancelled=None,
        faults={},
        priorities=priorities,
        pauses=(*[0.1] * controllers, 4.0),
        budgets=(*[LARGE] * controllers, 8),
    )
    world = World(seed, files.emptied(), controllers, scenario=scenario, devices=DEVICES, places=1)
    world.run(awaited=controllers)
    jobs = [world.database.jobs.get(job.id) for job in world.jobs]
    assert jobs[-1].state is JobState.SUCCEEDED
    ended = [job.priority for job in jobs if QUEUED_AGAIN in [phase.activity for phase in job.phases]]
    assert ended == [1]
