"""Two jobs side by side: one run of the model, and each function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from loopwright import schemas
from loopwright.results.tables import Column, Layout, Row, called, to_pandas
from loopwright.results.units import latency, ratio

if TYPE_CHECKING:
    from rich.table import Table


class DiffRow(BaseModel):
    """A function of either job, with its latencies in microseconds; None where a job does not have the function."""

    task: str
    """Where the model calls it, or the name of the function."""
    workload_hash: str
    """Digest of the function, by which the jobs' tasks are matched."""
    left_us: float | None
    """Best latency in the first job."""
    right_us: float | None
    """Best latency in the second job."""
    speedup: float | None
    """``left_us / right_us``: above 1, the second job's is faster. None unless both are known and can be compared."""


def _row(row: DiffRow) -> Row:
    return row.task, latency(row.left_us), latency(row.right_us), ratio(row.speedup)


DIFF = Layout(
    (
        Column("task", folds=True),
        Column("left", is_number=True),
        Column("right", is_number=True),
        Column("left / right", is_number=True),
    ),
    _row,
)


@dataclass(frozen=True, slots=True)
class JobDiff:
    """What `Job.diff` returns; shows itself as a table in terminals and notebooks."""

    left: schemas.Job
    """The first job."""
    right: schemas.Job
    """The second job."""

    @property
    def comparable(self) -> bool:
        """Whether both jobs are for the same device class; timings of different ones cannot be compared."""
        return self.left.device_class == self.right.device_class

    @property
    def rows(self) -> Sequence[DiffRow]:
        """The functions of both jobs, those with the largest difference in the model's time first."""
        left, right = ({task.workload_hash: task for task in job.tasks} for job in (self.left, self.right))
        weights = {digest: task.weight for digest, task in (right | left).items()}
        rows = [self._of(digest, left.get(digest), right.get(digest)) for digest in left | right]
        return sorted(rows, key=lambda row: -weights[row.workload_hash] * _difference(row))

    def _of(self, digest: str, left: schemas.Task | None, right: schemas.Task | None) -> DiffRow:
        one, other = (None if task is None else task.best_us for task in (left, right))
        known = one is not None and other is not None and self.comparable
        task = left or right
        assert task is not None, "the digest is that of a task of one of the jobs"
        return DiffRow(
            task=called(task),
            workload_hash=digest,
            left_us=one,
            right_us=other,
            speedup=one / other if known and one and other else None,
        )

    @property
    def caption(self) -> str:
        """One run of each model, in words."""
        told = [f"{job.name} ({job.id}): {_of_model(job)}" for job in (self.left, self.right)]
        if not self.comparable:
            told.append("the jobs are for different device classes, whose timings cannot be compared")
        elif self.left.model is not None and self.right.model is not None:
            gain = self.left.model.latency_us / self.right.model.latency_us
            told.append(f"left / right of one run of the model: {ratio(gain)}")
        return "; ".join(told)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a row for each function (needs pandas)."""
        return to_pandas(self.rows)

    def _repr_html_(self) -> str:
        return DIFF.html(self.rows, self.caption)

    def __rich__(self) -> Table:
        table = DIFF.rich(self.rows)
        table.caption = self.caption
        return table

    def __repr__(self) -> str:
        return f"<JobDiff of {self.left.id} and {self.right.id}>"


def _of_model(job: schemas.Job) -> str:
    return job.state if job.model is None else f"{latency(job.model.latency_us)}, {job.state}"


def _difference(row: DiffRow) -> float:
    return abs((row.left_us or 0.0) - (row.right_us or 0.0))
