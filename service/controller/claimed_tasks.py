"""The tasks of a claimed job, read once: which tasks are open, which the database answers, and how the job ends."""

from __future__ import annotations

from dataclasses import dataclass

from db import Database
from db.jobs.left import why_partly
from db.states import FinalState
from db.views import ClaimedJob, TaskView
from loopwright.codegen.kinds import FINISHED_TASK, AnsweredFrom, JobState, TaskState
from service.controller import unfinished


@dataclass(frozen=True, slots=True)
class ClaimedTasks:
    """``tasks`` are all tasks of the job, as they were when `read` was called."""

    database: Database
    claimed: ClaimedJob
    tasks: tuple[TaskView, ...]

    @staticmethod
    def read(database: Database, claimed: ClaimedJob) -> ClaimedTasks:
        return ClaimedTasks(database, claimed, tuple(database.tasks.of_job(claimed.job.id)))

    @property
    def open(self) -> list[TaskView]:
        return [task for task in self.tasks if task.state not in FINISHED_TASK]

    @property
    def succeeded(self) -> bool:
        return all(task.state is TaskState.SUCCEEDED for task in self.tasks)

    def answer(self, task: TaskView, source: AnsweredFrom) -> bool:
        """Finish a task with a certificate of a search with at least the same budget. Return False if there is none.

        If the job needs a plateau only, a certificate of a search that reached its plateau is enough.
        A job with ``force`` searches again, and uses only the result of a search that it joined.
        """
        job = self.claimed.job
        if job.force and source is AnsweredFrom.DATABASE:
            return False
        share = job.budget.trials_of_a_task(len(self.tasks))
        known = self.database.certificates.known(
            task.workload_hash, job.device_class_id, job.space_hash, share, or_plateau=job.budget.until is not None
        )
        if known is None:
            return False
        self.database.tasks.answer(task.id, self.claimed.lease_token, known.id, source)
        return True

    def finish(self) -> None:
        """Finish a job without open tasks.

        The job fails if any of its tasks failed, and succeeds only partly if no candidate of its weightiest task ran,
        or if its time was over before all tasks were certified.
        """
        failed = [task for task in self.tasks if task.state is TaskState.FAILED]
        left = unfinished.of(failed)
        if left and len(left) == len(failed):
            unfinished.submit(self.database, self.claimed, left)
            self._end(JobState.PARTLY, why_partly(left, len(self.tasks)))
        elif failed:
            reasons = "; ".join(f"{task.name}: {task.error}" for task in failed)
            self._end(JobState.FAILED, f"{len(failed)} of {len(self.tasks)} tasks have no result. {reasons}")
        elif (weightiest := self._weightiest()) is not None and _has_no_candidate(weightiest):
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(weightiest.failures.items()))
            reason = (
                f"{weightiest.name}, which takes most of the model's time, stays as TVM compiles it: all of its "
                f"{weightiest.trials} candidates failed ({kinds})"
            )
            self._end(JobState.PARTLY, reason)
        else:
            self._end(JobState.SUCCEEDED, None)

    def _weightiest(self) -> TaskView | None:
        """Return the task that takes most of the model's time untuned; None without tasks."""
        return max(self.tasks, key=lambda task: task.weight * (task.baseline_secs or 0.0), default=None)

    def _end(self, state: FinalState, error: str | None) -> None:
        self.database.jobs.finish(self.claimed.job.id, self.claimed.lease_token, state, error)


def _has_no_candidate(task: TaskView) -> bool:
    return task.answered_from is AnsweredFrom.SEARCH and 0 < task.trials == task.failed
