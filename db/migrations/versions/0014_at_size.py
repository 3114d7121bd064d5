"""A million trials: compressed texts, sums that are kept as trials end, and indexes for what is asked most."""

from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from db.compression import compress, compress_trace, decompress, decompress_trace

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_CHUNK = 2000
_MEASURED = sa.text("median IS NOT NULL")
_INDEXES: tuple[tuple[str, str, list[str], sa.TextClause | None], ...] = (
    ("ix_trials_created_at", "trials", ["created_at"], None),
    ("ix_trials_device_class_id_created_at", "trials", ["device_class_id", "created_at"], None),
    ("ix_trials_fastest", "trials", ["median"], _MEASURED),
    ("ix_trials_fastest_of_class", "trials", ["device_class_id", "median"], _MEASURED),
    ("ix_trials_proposed", "trials", ["task_id"], sa.text("state = 'proposed'")),
    (
        "ix_jobs_totals",
        "jobs",
        ["state", "private", "user_name", "trials", "saved_secs", "search_saved_secs"],
        None,
    ),
)

_TRIALS = sa.table(
    "trials",
    *(sa.column(name, sa.Text) for name in ("id", "task_id", "device_class_id", "tvm_version", "state")),
    *(sa.column(name, sa.Text) for name in ("failure_kind", "trace_json", "lease_token")),
    sa.column("number", sa.Integer),
    sa.column("median", sa.Double),
    sa.column("trace", sa.LargeBinary),
    sa.column("features", sa.LargeBinary),
)
_WORKLOADS = sa.table(
    "workloads",
    *(sa.column(name, sa.Text) for name in ("hash", "module_json", "script")),
    *(sa.column(name, sa.LargeBinary) for name in ("module", "source")),
)
_TASKS = sa.table(
    "tasks",
    sa.column("id", sa.Text),
    sa.column("job_id", sa.Text),
    sa.column("trials", sa.Integer),
    sa.column("failures", sa.JSON),
    sa.column("baseline_secs", sa.Double),
    sa.column("best_secs", sa.Double),
)
_JOBS = sa.table(
    "jobs",
    *(sa.column(name, sa.Text) for name in ("id", "state", "module_json")),
    sa.column("module", sa.LargeBinary),
    sa.column("trials", sa.Integer),
)
_COUNTS = sa.table(
    "trial_counts",
    *(sa.column(name, sa.Text) for name in ("device_class_id", "tvm_version", "outcome")),
    *(sa.column(name, sa.BigInteger) for name in ("trials", "samples")),
)


_TEXTS = (
    (_TRIALS, "id", "trace_json", "trace"),
    (_WORKLOADS, "hash", "module_json", "module"),
    (_WORKLOADS, "hash", "script", "source"),
    (_JOBS, "id", "module_json", "module"),
)
"""Tables with a text that is compressed: their primary keys, and the columns of both."""


def upgrade() -> None:
    for stored, key, text, compressed in _TEXTS:
        is_trace = compressed == "trace"
        op.add_column(stored.name, sa.Column(compressed, sa.LargeBinary(), nullable=True))
        _rewrite(stored, key, text, compressed, compress_trace if is_trace else compress)
        _drop(stored.name, text, None if is_trace else compressed)
    op.execute(_TRIALS.update().where(_TRIALS.c.state != "proposed").values(lease_token=None))
    op.add_column("tasks", sa.Column("trials", sa.Integer(), server_default="0", nullable=False))
    op.add_column("tasks", sa.Column("failures", sa.JSON(), server_default="{}", nullable=False))
    op.add_column("tasks", sa.Column("baseline_secs", sa.Double(), nullable=True))
    op.add_column("tasks", sa.Column("best_secs", sa.Double(), nullable=True))
    op.add_column("jobs", sa.Column("trials", sa.Integer(), server_default="0", nullable=False))
    op.add_column("cost_models", sa.Column("available", sa.BigInteger(), server_default="0", nullable=False))
    op.execute("UPDATE cost_models SET available = samples")
    op.create_table(
        "trial_counts",
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("trials", sa.BigInteger(), nullable=False),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("device_class_id", "tvm_version", "outcome", name="pk_trial_counts"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_trial_counts_device_class_id"),
    )
    _count_tasks()
    _count_all()
    op.drop_index("ix_trials_finished_at", "trials")
    op.drop_index("ix_trials_created_at_id", "trials")
    for name, table, columns, where in _INDEXES:
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name, table, _, _ in reversed(_INDEXES):
        op.drop_index(name, table)
    op.create_index("ix_trials_created_at_id", "trials", ["created_at", "id"])
    op.create_index("ix_trials_finished_at", "trials", ["finished_at"])
    op.drop_table("trial_counts")
    op.drop_column("cost_models", "available")
    op.drop_column("jobs", "trials")
    for column in ("best_secs", "baseline_secs", "failures", "trials"):
        op.drop_column("tasks", column)
    for stored, key, text, compressed in _TEXTS:
        is_trace = compressed == "trace"
        op.add_column(stored.name, sa.Column(text, sa.Text(), nullable=True))
        _rewrite(stored, key, compressed, text, decompress_trace if is_trace else decompress)
        _drop(stored.name, compressed, None if is_trace else text)


def _rewrite(table: sa.TableClause, key: str, source: str, target: str, convert: Callable[[Any], Any]) -> None:
    """Fill a column from another of its table, some rows at a time."""
    update = table.update().where(table.c[key] == sa.bindparam("row"))
    update = update.values({target: sa.bindparam("converted", type_=table.c[target].type)})
    for rows in _chunks(table.c[key], table.c[source]):
        op.get_bind().execute(update, [{"row": id, "converted": convert(value)} for id, value in rows])


def _chunks(key: sa.ColumnElement[Any], column: sa.ColumnElement[Any]) -> Iterator[list[Any]]:
    last = ""
    while True:
        later = sa.select(key, column).where(key > last, column.is_not(None))
        rows = list(op.get_bind().execute(later.order_by(key).limit(_CHUNK)))
        if not rows:
            return
        last = rows[-1][0]
        yield rows


def _drop(table: str, column: str, required: str | None) -> None:
    """Drop a column; ``required`` is filled in all rows now. SQLite copies the table for that."""
    if required is None:
        op.drop_column(table, column)
        return
    with op.batch_alter_table(table) as changed:
        changed.drop_column(column)
        changed.alter_column(required, nullable=False)


def _count_tasks() -> None:
    """Set what is kept of each task, and the sums of jobs that have ended."""
    searched = sa.func.sum(sa.case((_TRIALS.c.number > 0, 1), else_=0))
    baseline = sa.func.min(sa.case((_TRIALS.c.number == 0, _TRIALS.c.median)))
    counted = (
        sa.select(_TRIALS.c.task_id, _TRIALS.c.failure_kind, searched, sa.func.min(_TRIALS.c.median), baseline)
        .where(_TRIALS.c.task_id.is_not(None), _TRIALS.c.state != "proposed")
        .group_by(_TRIALS.c.task_id, _TRIALS.c.failure_kind)
    )
    tasks: dict[str, dict[str, Any]] = {}
    for task_id, kind, trials, best, baseline_secs in op.get_bind().execute(counted):
        empty = {"task": task_id, "made": 0, "failed": {}, "best": None, "baseline": None}
        task = tasks.setdefault(task_id, empty)
        task["made"] += trials
        if kind is None:
            task["best"], task["baseline"] = best, baseline_secs
        elif trials:
            task["failed"][kind] = trials
    update = _TASKS.update().where(_TASKS.c.id == sa.bindparam("task"))
    update = update.values(
        trials=sa.bindparam("made"),
        failures=sa.bindparam("failed", type_=sa.JSON),
        best_secs=sa.bindparam("best"),
        baseline_secs=sa.bindparam("baseline"),
    )
    if tasks:
        op.get_bind().execute(update, list(tasks.values()))
    made = sa.select(sa.func.coalesce(sa.func.sum(_TASKS.c.trials), 0)).where(_TASKS.c.job_id == _JOBS.c.id)
    ended = _JOBS.c.state.in_(("succeeded", "failed", "cancelled"))
    op.execute(_JOBS.update().where(ended).values(trials=made.scalar_subquery()))


def _count_all() -> None:
    outcome = sa.func.coalesce(_TRIALS.c.failure_kind, sa.literal_column("'measured'"))
    learns = _TRIALS.c.features.is_not(None) & (outcome != "DEVICE_LOST")
    counted = (
        sa.select(
            _TRIALS.c.device_class_id,
            _TRIALS.c.tvm_version,
            outcome,
            sa.func.count(),
            sa.func.sum(sa.case((learns, 1), else_=0)),
        )
        .where(_TRIALS.c.task_id.is_not(None), _TRIALS.c.state != "proposed")
        .group_by(_TRIALS.c.device_class_id, _TRIALS.c.tvm_version, outcome)
    )
    op.execute(_COUNTS.insert().from_select([column.name for column in _COUNTS.c], counted))
