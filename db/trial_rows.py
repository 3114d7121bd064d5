"""Convert rows of the ledger to values, for the search and for lists."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import defer

from db.models import Trial as TrialRow
from db.views import TrialView
from loopwright.codegen.kinds import Lane, TrialState
from tuner.codec import decode
from tuner.types import DeviceState, Failure, MeasureCandidate, Measured, Outcome, Span, Trial


def trial_value(row: TrialRow) -> Trial:
    """Return a trial as a search resumes from it."""
    candidate = MeasureCandidate(row.trace_json, row.origin, row.predicted, row.parent, predicted_by=row.predicted_by)
    attempts = tuple(span for span in spans_of(row) if span.lane is not Lane.PROPOSE)
    # Of an unfinished trial, only attempts that were killed are stored.
    killed = attempts if row.state is TrialState.PROPOSED else ()
    return Trial(row.id, candidate, _outcome(row, attempts), killed)


def _outcome(row: TrialRow, spans: tuple[Span, ...]) -> Outcome | None:
    match row.state:
        case TrialState.PROPOSED:
            return None
        case TrialState.MEASURED:
            state = decode(DeviceState | None, row.device_state)
            return Measured(tuple(row.run_secs or ()), row.worker or "", spans, row.sandbox, state)
        case TrialState.FAILED:
            assert row.failure_stage is not None, "a failure is written whole"
            assert row.failure_kind is not None, "a failure is written whole"
            return Failure(row.failure_stage, row.failure_kind, row.failure_message or "", row.worker, spans)


def stored_span(span: Span) -> list[Any]:
    """Return a span as it is stored: to a tenth of a millisecond, which takes a third less than all digits."""
    return [span.lane, span.worker, round(span.start, 4), round(span.end, 4)]


def spans_of(row: TrialRow) -> tuple[Span, ...]:
    """Return the spans of work on a trial."""
    return tuple(Span(Lane(lane), worker, start, end) for lane, worker, start, end in row.spans or ())


LINE = defer(TrialRow.trace_json)
"""What `trial_view` does without."""


def trial_view(row: TrialRow) -> TrialView:
    """Return a trial as it is listed for its job."""
    return TrialView(
        id=row.id,
        workload_hash=row.workload_hash,
        number=row.number,
        state=row.state,
        origin=row.origin,
        predicted=row.predicted,
        predicted_by=row.predicted_by,
        median=row.median,
        failure_kind=row.failure_kind,
        failure_stage=row.failure_stage,
        failure_message=row.failure_message,
        worker=row.worker,
        created_at=row.created_at,
        finished_at=row.finished_at,
        spans=spans_of(row),
    )
