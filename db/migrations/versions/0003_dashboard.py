"""What the dashboard shows: the leaderboard, operations, peaks, timelines, and how workers fare."""

import statistics
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_INDEXED = ("name", "op", "text", "baseline_median", "best_median", "speedup", "peak_share", "created_at")
_FASTEST = """
    SELECT id, workload_hash, device_class_id, name, baseline_median, best_median, best_run_secs, created_at FROM (
        SELECT c.*, w.name, row_number() OVER (
            PARTITION BY c.workload_hash, c.device_class_id ORDER BY c.best_median, c.created_at DESC, c.id
        ) AS place
        FROM certificates c JOIN workloads w ON w.hash = c.workload_hash
    ) ranked WHERE place = 1
"""

_SAVED = """
    UPDATE jobs SET saved_secs = coalesce((
        SELECT sum(t.weight * (c.baseline_median - c.best_median))
        FROM tasks t JOIN certificates c ON c.id = t.certificate_id WHERE t.job_id = jobs.id
    ), 0) WHERE state = 'succeeded'
"""


def _columns() -> dict[str, list[sa.Column[Any]]]:
    return {
        # Computing an operation needs TVM: rows that are there get theirs when their workload is submitted again.
        "workloads": [
            sa.Column("op", sa.Text(), nullable=False, server_default=""),
            sa.Column("compute_dtype", sa.Text(), nullable=False, server_default=""),
            sa.Column("flop", sa.Double(), nullable=True),
        ],
        "device_classes": [
            sa.Column("peak_dtype", sa.Text(), nullable=True),
            sa.Column("peak_flops", sa.Double(), nullable=True),
            sa.Column("peak_bytes", sa.Double(), nullable=True),
            sa.Column("peaks_measured_at", sa.DateTime(timezone=True), nullable=True),
        ],
        "workers": [
            sa.Column("builders_busy", sa.Integer(), nullable=False, server_default="0"),
            sa.Column("slot_since", sa.DateTime(timezone=True), nullable=True),
            sa.Column("slot_trial_id", sa.Text(), nullable=True),
            sa.Column("slot_use", sa.Double(), nullable=True),
            sa.Column("quarantined_at", sa.DateTime(timezone=True), nullable=True),
            sa.Column("quarantine_reason", sa.Text(), nullable=True),
            sa.Column("readmitted_at", sa.DateTime(timezone=True), nullable=True),
        ],
        "jobs": [
            sa.Column("shapes", sa.JSON(none_as_null=True), nullable=True),
            sa.Column("saved_secs", sa.Double(), nullable=False, server_default="0"),
            sa.Column("search_saved_secs", sa.Double(), nullable=False, server_default="0"),
        ],
        "trials": [sa.Column("spans", sa.JSON(none_as_null=True), nullable=True)],
        "certificates": [
            sa.Column("search_secs", sa.Double(), nullable=False, server_default="0"),
            sa.Column("library", sa.JSON(none_as_null=True), nullable=True),
        ],
    }


def upgrade() -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)
    op.create_index("ix_trials_finished_at", "trials", ["finished_at"])
    lost = sa.text("failure_kind = 'DEVICE_LOST'")
    op.create_index("ix_trials_lost", "trials", ["worker", "finished_at"], sqlite_where=lost, postgresql_where=lost)
    op.create_table(
        "checks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("secs", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_checks"),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_checks_worker_id"),
    )
    op.create_index("ix_checks_worker_id_created_at", "checks", ["worker_id", "created_at"])
    bests = op.create_table(
        "bests",
        sa.Column("workload_hash", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("certificate_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("baseline_median", sa.Double(), nullable=False),
        sa.Column("best_median", sa.Double(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("spread", sa.Double(), nullable=False),
        sa.Column("peak_share", sa.Double(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workload_hash", "device_class_id", name="pk_bests"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_bests_workload_hash"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_bests_device_class_id"),
        sa.ForeignKeyConstraint(["certificate_id"], ["certificates.id"], name="fk_bests_certificate_id"),
    )
    _fill(bests)
    op.execute(_SAVED)
    for key in _INDEXED:
        op.create_index(
            f"ix_bests_{key}_workload_hash_device_class_id", "bests", [key, "workload_hash", "device_class_id"]
        )


def downgrade() -> None:
    op.drop_table("bests")
    op.drop_table("checks")
    op.drop_index("ix_trials_lost", "trials")
    op.drop_index("ix_trials_finished_at", "trials")
    for table, columns in _columns().items():
        for column in columns:
            op.drop_column(table, column.name)


def _fill(bests: sa.Table) -> None:
    fastest = sa.text(_FASTEST).columns(best_run_secs=sa.JSON(), created_at=sa.DateTime(timezone=True))
    rows = [
        {
            "workload_hash": row.workload_hash,
            "device_class_id": row.device_class_id,
            "certificate_id": row.id,
            "name": row.name,
            "op": "",
            "text": row.name.lower(),
            "baseline_median": row.baseline_median,
            "best_median": row.best_median,
            "speedup": row.baseline_median / row.best_median,
            "spread": _spread(row.best_run_secs),
            "created_at": row.created_at,
        }
        for row in op.get_bind().execute(fastest)
    ]
    if rows:
        op.bulk_insert(bests, rows)


def _spread(seconds: list[float]) -> float:
    if len(seconds) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return (high - low) / middle
