"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "targets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("json", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_targets"),
    )
    op.create_table(
        "workloads",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("module_json", sa.Text(), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("args", sa.JSON(), nullable=False),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_workloads"),
    )
    op.create_index("ix_workloads_created_at_hash", "workloads", ["created_at", "hash"])

    op.create_table(
        "device_classes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("features", sa.JSON(), nullable=False),
        sa.Column("cores", sa.Integer(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("runtime", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["target_id"], ["targets.id"], name="fk_device_classes_target_id"),
        sa.PrimaryKeyConstraint("id", name="pk_device_classes"),
    )
    op.create_index("ix_device_classes_target_id", "device_classes", ["target_id"])

    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("module_json", sa.Text(), nullable=False),
        sa.Column("space_json", sa.Text(), nullable=True),
        sa.Column("space_hash", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("target_json", sa.Text(), nullable=False),
        sa.Column("max_trials", sa.Integer(), nullable=False),
        sa.Column("max_seconds", sa.Double(), nullable=True),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("force", sa.Boolean(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("request_digest", sa.Text(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("elapsed_s", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_jobs_state")
        ),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_jobs_device_class_id"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("idempotency_key", name="uq_jobs_idempotency_key"),
    )
    op.create_index("ix_jobs_created_at_id", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_state_priority_created_at", "jobs", ["state", "priority", "created_at"])

    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("builders", sa.Integer(), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_workers_device_class_id"),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_events_job_id"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_job_id_id", "events", ["job_id", "id"])

    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("workload_hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("weight", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("answered_from", sa.Text(), nullable=True),
        sa.Column("certificate_id", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'joined', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_tasks_state")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_tasks_job_id"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_tasks_workload_hash"),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.UniqueConstraint("job_id", "position", name="uq_tasks_job_id_position"),
    )
    op.create_index("ix_tasks_key", "tasks", ["key"])
    op.create_index(
        "uq_tasks_running_key",
        "tasks",
        ["key"],
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )

    op.create_table(
        "trials",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("workload_hash", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("candidate_hash", sa.Text(), nullable=False),
        sa.Column("trace_json", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("run_secs", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("median", sa.Double(), nullable=True),
        sa.Column("failure_stage", sa.Text(), nullable=True),
        sa.Column("failure_kind", sa.Text(), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=True),
        sa.Column("predicted", sa.Double(), nullable=True),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("seed", sa.Integer(), nullable=True),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(state = 'failed') = (failure_kind IS NOT NULL)", name=op.f("ck_trials_failed")),
        sa.CheckConstraint("(state = 'measured') = (median IS NOT NULL)", name=op.f("ck_trials_measured")),
        sa.CheckConstraint(
            "state IN ('proposed', 'leased', 'built', 'measured', 'failed')", name=op.f("ck_trials_state")
        ),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_trials_device_class_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_trials_task_id"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_trials_workload_hash"),
        sa.PrimaryKeyConstraint("id", name="pk_trials"),
        sa.UniqueConstraint("task_id", "candidate_hash", name="uq_trials_task_id_candidate_hash"),
        sa.UniqueConstraint("task_id", "number", name="uq_trials_task_id_number"),
    )
    op.create_index("ix_trials_created_at_id", "trials", ["created_at", "id"])
    op.create_index(
        "ix_trials_workload_hash_device_class_id_median", "trials", ["workload_hash", "device_class_id", "median"]
    )
    op.create_index(
        "uq_trials_imported",
        "trials",
        ["workload_hash", "device_class_id", "candidate_hash"],
        unique=True,
        sqlite_where=sa.text("task_id IS NULL"),
        postgresql_where=sa.text("task_id IS NULL"),
    )

    op.create_table(
        "certificates",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workload_hash", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("space_hash", sa.Text(), nullable=False),
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("rtol", sa.Double(), nullable=False),
        sa.Column("atol", sa.Double(), nullable=False),
        sa.Column("max_abs_error", sa.Double(), nullable=False),
        sa.Column("max_rel_error", sa.Double(), nullable=False),
        sa.Column("baseline_run_secs", sa.JSON(), nullable=False),
        sa.Column("best_run_secs", sa.JSON(), nullable=False),
        sa.Column("baseline_median", sa.Double(), nullable=False),
        sa.Column("best_median", sa.Double(), nullable=False),
        sa.Column("contenders", sa.Integer(), nullable=False),
        sa.Column("rejected", sa.JSON(), nullable=False),
        sa.Column("budget_trials", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_certificates_device_class_id"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name="fk_certificates_trial_id"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_certificates_workload_hash"),
        sa.PrimaryKeyConstraint("id", name="pk_certificates"),
    )
    op.create_index("ix_certificates_trial_id", "certificates", ["trial_id"])
    op.create_index(
        "ix_certificates_workload_hash_device_class_id_best_median",
        "certificates",
        ["workload_hash", "device_class_id", "best_median"],
    )


def downgrade() -> None:
    op.drop_table("certificates")
    op.drop_table("trials")
    op.drop_table("tasks")
    op.drop_table("events")
    op.drop_table("workers")
    op.drop_table("jobs")
    op.drop_table("device_classes")
    op.drop_table("workloads")
    op.drop_table("targets")
