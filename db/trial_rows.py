"""Convert rows of the ledger to values, for the search and for lists."""

from __future__ import annotations

from typing import Any

from db.models import Trial as TrialRow
from db.views import TrialView
from loopwright.codegen.kinds import Lane, TrialState
from tuner.codec import decode
from tuner.types import DeviceState, Failure, MeasureCandidate, Measured, Outcome, Span, Trial


def trial_value(row: TrialRow) -> Trial:
    """Return a trial as a search resumes from it."""
    candidate = MeasureCandidate(row.trace_json, row.origin, row.predicted, row.parent, predicted_by=row.predicted_by)
    attempts = tuple(span for span in spans_of(row.spans) if span.lane is not Lane.PROPOSE)
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


def spans_of(stored: list[Any] | None) -> tuple[Span, ...]:
    """Return the spans of work on a trial, from how they are stored."""
    return tuple(Span(Lane(lane), worker, start, end) for lane, worker, start, end in stored or ())


LINE = (
    *(TrialRow.id, TrialRow.workload_hash, TrialRow.number, TrialRow.state, TrialRow.origin),
    *(TrialRow.predicted, TrialRow.predicted_by, TrialRow.median),
    *(TrialRow.failure_kind, TrialRow.failure_stage, TrialRow.failure_message),
    *(TrialRow.worker, TrialRow.created_at, TrialRow.finished_at, TrialRow.spans),
)
"""The columns of `trial_view`, which a list reads without the rest of its rows, and without making objects of them."""


def trial_view(*line: Any) -> TrialView:
    """Return a trial as it is listed for its job, from the columns `LINE`."""
    fields = *line[:-1], spans_of(line[-1])
    return TrialView(*fields)
