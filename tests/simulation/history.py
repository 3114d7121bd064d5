"""What must be true of a run, whatever happened in it: no work lost, none doubled, none stuck."""

from __future__ import annotations

from collections import Counter

from db.states import EventType
from loopwright.codegen.kinds import FINISHED_TASK, AnsweredFrom, JobState, TaskState
from tests.simulation.world import World


def check(world: World) -> None:
    db, scenario = world.database, world.scenario
    counted: Counter[str] = Counter()
    if "clock jump" not in world.faults:  # which ends leases before their owners can know
        assert not world.machines.overlaps, world.machines.overlaps
    for number, submitted in enumerate(world.jobs):
        job, tasks = db.jobs.get(submitted.id), db.tasks.of_job(submitted.id)
        cancelled = job.state is JobState.CANCELLED and number == scenario.cancelled
        assert cancelled or job.state in (JobState.SUCCEEDED, JobState.PARTLY), (job.state, job.error)
        assert job.finished_at is not None
        assert job.attempts <= 1 + 2 * world.faults.total(), "claims that nothing explains"
        told = [event.change.trial.id for event in db.events.after(job.id) if event.type is EventType.TRIAL]
        stored = []
        for task in tasks:
            assert task.state in FINISHED_TASK
            trials = db.trials.history(task.id)
            stored += [trial.id for trial in trials]
            assert all(trial.outcome is not None for trial in trials), "lost: proposed, and never measured"
            hashes = [trial.candidate.hash for trial in trials]
            assert len(set(hashes)) == len(hashes), "doubled: a candidate twice"
            candidates = [trial for trial in trials if trial.candidate.trace_json is not None]
            assert task.trials == len(candidates)
            if task.state is TaskState.SUCCEEDED:
                assert task.certificate_id is not None
                if task.answered_from is AnsweredFrom.SEARCH:
                    assert len(candidates) >= min(1, scenario.budget(number) // len(tasks))
        assert sorted(told) == sorted(stored), "each trial has one event"
        searched = sum(task.trials for task in tasks)
        assert searched <= max(scenario.budget(number), len(tasks)), "doubled: more trials than the budget"
        if job.state is not JobState.CANCELLED and all(task.answered_from is AnsweredFrom.SEARCH for task in tasks):
            assert searched >= scenario.budget(number), "lost: less trials than the budget"
        counted["trials"] += len(stored)
    assert sum(day.trials for day in db.uses.of("owner").days) == counted["trials"]
    assert sum(db.counts().trials.values()) == counted["trials"]
    assert db.counts().proposed == 0
    assert db.job_counts.correct() == 0
