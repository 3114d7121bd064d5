"""Trials are proposed, measured or failed; events store seconds, and of a trial its id only."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.operations import BatchOperations

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_STATES = ("proposed", "measured", "failed")
_EARLIER_STATES = ("proposed", "leased", "built", "measured", "failed")
_CHUNK = 1000

_EVENTS = sa.table("events", sa.column("id", sa.BigInteger), sa.column("type", sa.Text), sa.column("data", sa.JSON))
_TRIALS = sa.table(
    "trials",
    *(sa.column(name, sa.Text) for name in ("id", "workload_hash", "state", "origin", "worker")),
    *(sa.column(name, sa.Text) for name in ("failure_kind", "failure_stage", "failure_message")),
    sa.column("number", sa.Integer),
    *(sa.column(name, sa.Double) for name in ("predicted", "median")),
    *(sa.column(name, sa.DateTime(timezone=True)) for name in ("created_at", "finished_at")),
    sa.column("spans", sa.JSON),
)

Data = dict[str, Any]


def upgrade() -> None:
    op.execute("UPDATE trials SET state = 'proposed' WHERE state IN ('leased', 'built')")
    op.execute("UPDATE trials SET origin = 'random' WHERE origin = 'space'")
    _alter_trials(_STATES, lambda trials: trials.drop_column("started_at"))
    _rewrite_events("task", _task_in_seconds)
    _rewrite_events("trial", lambda data: {"id": data["id"]})


def downgrade() -> None:
    started_at = sa.Column("started_at", sa.DateTime(timezone=True), nullable=True)
    _alter_trials(_EARLIER_STATES, lambda trials: trials.add_column(started_at))
    _rewrite_events("task", _task_in_microseconds)
    _rewrite_events("trial", lambda data: _trial_for_the_wire(data["id"]))


def _alter_trials(states: tuple[str, ...], change: Callable[[BatchOperations], None]) -> None:
    """Change the columns of trials, and the states that it allows. SQLite copies the table."""
    with op.batch_alter_table("trials") as trials:
        trials.drop_constraint(op.f("ck_trials_state"), type_="check")
        trials.create_check_constraint(op.f("ck_trials_state"), f"state IN ({', '.join(map(repr, states))})")
        change(trials)


def _rewrite_events(type: str, rewrite: Callable[[Data], Data]) -> None:
    """Replace the data of all events of a type, some at a time."""
    update = _EVENTS.update().where(_EVENTS.c.id == sa.bindparam("event"))
    update = update.values(data=sa.bindparam("rewritten", type_=sa.JSON))
    for rows in _chunks(type):
        op.get_bind().execute(update, [{"event": row.id, "rewritten": rewrite(row.data)} for row in rows])


def _chunks(type: str) -> Iterator[list[Any]]:
    last = -1
    while True:
        later = sa.select(_EVENTS.c.id, _EVENTS.c.data).where(_EVENTS.c.type == type, _EVENTS.c.id > last)
        rows = list(op.get_bind().execute(later.order_by(_EVENTS.c.id).limit(_CHUNK)))
        if not rows:
            return
        last = rows[-1].id
        yield rows


def _task_in_seconds(data: Data) -> Data:
    baseline, best = data["baseline_us"], data["best_us"]
    return {
        "workload_hash": data["workload_hash"],
        "state": data["state"],
        "baseline_secs": None if baseline is None else baseline / 1e6,
        "best_secs": None if best is None else best / 1e6,
    }


def _task_in_microseconds(data: Data) -> Data:
    baseline, best = data["baseline_secs"], data["best_secs"]
    return {
        "workload_hash": data["workload_hash"],
        "state": data["state"],
        "baseline_us": None if baseline is None else baseline * 1e6,
        "best_us": None if best is None else best * 1e6,
        "speedup": None if baseline is None or best is None else baseline / best,
        "certified": best is not None,
    }


def _trial_for_the_wire(trial_id: str) -> Data:
    row = op.get_bind().execute(sa.select(_TRIALS).where(_TRIALS.c.id == trial_id)).one()
    return {
        "id": row.id,
        "workload_hash": row.workload_hash,
        "number": row.number,
        "state": row.state,
        "origin": row.origin,
        "predicted": row.predicted,
        "median_us": None if row.median is None else row.median * 1e6,
        "failure_kind": row.failure_kind,
        "failure_stage": row.failure_stage,
        "failure_message": row.failure_message,
        "worker": row.worker,
        "created_at": _iso(row.created_at),
        "finished_at": None if row.finished_at is None else _iso(row.finished_at),
        "spans": [
            {
                "stage": lane,
                "worker": worker,
                "started_at": datetime.fromtimestamp(start, UTC).isoformat(),
                "finished_at": datetime.fromtimestamp(end, UTC).isoformat(),
            }
            for lane, worker, start, end in row.spans or ()
        ],
    }


def _iso(time: datetime) -> str:
    return (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)).isoformat()
