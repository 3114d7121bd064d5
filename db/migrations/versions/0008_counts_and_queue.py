"""Counts of jobs, tallies of trials, and indexes that find the next job however many wait."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_ACTIVE = ("queued", "running")
_UNFINISHED = "state IN ('queued', 'running')"
_INDEXES: tuple[tuple[str, list[str], str | None], ...] = (
    (
        "ix_jobs_queue",
        ["device_class_id", "labels_json", "priority", "user_name", "queued_at", "id"],
        "state = 'queued'",
    ),
    ("ix_jobs_answered", ["queued_at", "id"], "state = 'queued' AND is_answered IS TRUE"),
    ("ix_jobs_running", ["user_name"], "state = 'running'"),
    ("ix_jobs_begun", ["user_name", "id"], "started_at IS NOT NULL AND finished_at IS NULL"),
    ("ix_jobs_unfinished", ["created_at", "id", "state"], _UNFINISHED),
    ("ix_jobs_finished", ["state", "created_at", "id"], "finished_at IS NOT NULL"),
    ("ix_jobs_private", ["id", "user_name"], "private IS TRUE"),
    ("ix_jobs_private_user_name_state", ["private", "user_name", "state"], None),
    ("ix_jobs_old", ["swept_at", "finished_at", "id"], "finished_at IS NOT NULL"),
)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("is_answered", sa.Boolean(), nullable=True))
    op.add_column("jobs", sa.Column("swept_at", sa.DateTime(timezone=True), nullable=True))
    op.drop_index("ix_jobs_state_priority_queued_at", "jobs")
    op.drop_index("ix_jobs_totals", "jobs")
    for name, columns, condition in _INDEXES:
        op.create_index(name, "jobs", columns, **({} if condition is None else _where(condition)))
    op.create_index("ix_workloads_private", "workloads", ["hash"], **_where("shared IS FALSE"))
    op.create_table(
        "job_counts",
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("promised_trials", sa.BigInteger(), nullable=False),
        sa.Column("trials", sa.BigInteger(), nullable=False),
        sa.Column("saved_secs", sa.Double(), nullable=False),
        sa.Column("search_saved_secs", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("user_name", "private", "state", name="pk_job_counts"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_job_counts_user_name"),
    )
    op.create_table(
        "trial_tallies",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", "day", "outcome", name="pk_trial_tallies"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_trial_tallies_task_id"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_trial_tallies_user_name"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_trial_tallies_device_class_id"),
    )
    op.create_index("ix_trial_tallies_user_name_day", "trial_tallies", ["user_name", "day"])
    _count_jobs()


def _count_jobs() -> None:
    names = ("trials", "saved_secs", "search_saved_secs")
    jobs = sa.table(
        "jobs",
        *(sa.column(name) for name in ("user_name", "private", "state", *names)),
        sa.column("budget", sa.JSON()),
    )
    key = jobs.c.user_name, jobs.c.private, jobs.c.state
    budget = sa.case((jobs.c.state.in_(_ACTIVE), jobs.c.budget["max_trials"].as_integer()), else_=0)
    sums = [sa.func.sum(each) for each in (budget, *(jobs.c[name] for name in names))]
    counted = sa.select(*key, sa.func.count(), *sums).group_by(*key)
    counts = sa.table(
        "job_counts",
        *(sa.column(name) for name in ("user_name", "private", "state", "jobs", "promised_trials", *names)),
    )
    op.execute(counts.insert().from_select([column.name for column in counts.columns], counted))


def downgrade() -> None:
    op.drop_table("trial_tallies")
    op.drop_table("job_counts")
    op.drop_index("ix_workloads_private", "workloads")
    for name, *_ in _INDEXES:
        op.drop_index(name, "jobs")
    totals = ["state", "private", "user_name", "trials", "saved_secs", "search_saved_secs"]
    op.create_index("ix_jobs_totals", "jobs", totals)
    op.create_index("ix_jobs_state_priority_queued_at", "jobs", ["state", "priority", "queued_at"])
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("swept_at")
        jobs.drop_column("is_answered")


def _where(condition: str) -> dict[str, Any]:
    """Return what restricts an index to some rows."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
