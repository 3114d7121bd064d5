"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
# No release has written tables of revision 0001.
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_created_at", "audit", ["created_at"])
    op.create_table(
        "lease_losses",
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("losses", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cause", name="pk_lease_losses"),
    )
    op.create_table(
        "targets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("json", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_targets"),
    )
    users = op.create_table(
        "users",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("active_jobs", sa.Integer(), nullable=True),
        sa.Column("daily_trials", sa.Integer(), nullable=True),
        sa.Column("daily_device_seconds", sa.Double(), nullable=True),
        sa.Column("daily_bytes", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    # Whose token is in the data directory.
    owner = {"name": "owner", "role": "admin", "created_at": sa.func.current_timestamp()}
    op.execute(users.insert().values(owner))
    op.create_table(
        "workloads",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("module", sa.LargeBinary(), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("args", sa.JSON(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("compute_dtype", sa.Text(), nullable=False),
        sa.Column("flop", sa.Double(), nullable=True),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_workloads"),
    )
    op.create_index("ix_workloads_created_at_hash", "workloads", ["created_at", "hash"])
    op.create_index("ix_workloads_family", "workloads", ["family"])
    op.create_table(
        "device_classes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("features", sa.JSON(), nullable=False),
        sa.Column("cores", sa.Integer(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("runtime", sa.Text(), nullable=False),
        sa.Column("peak_dtype", sa.Text(), nullable=True),
        sa.Column("peak_flops", sa.Double(), nullable=True),
        sa.Column("peak_bytes", sa.Double(), nullable=True),
        sa.Column("peaks_measured_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_device_classes"),
        sa.ForeignKeyConstraint(["target_id"], ["targets.id"], name="fk_device_classes_target_id"),
    )
    op.create_index("ix_device_classes_target_id", "device_classes", ["target_id"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("made_by", sa.Text(), nullable=True),
        sa.Column("ceiling", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_tokens_user_name"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"])
    op.create_index("ix_tokens_made_by", "tokens", ["made_by"])
    op.create_index("ix_tokens_user_name_created_at", "tokens", ["user_name", "created_at"])
    op.create_table(
        "usage",
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_name", "day", name="pk_usage"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_usage_user_name"),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_webhooks_user_name"),
    )
    op.create_table(
        "workload_holders",
        sa.Column("workload_hash", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workload_hash", "user_name", name="pk_workload_holders"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_workload_holders_user_name"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_workload_holders_workload_hash"),
    )
    op.create_table(
        "cost_models",
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("model", sa.LargeBinary(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("available", sa.BigInteger(), nullable=False),
        sa.Column("workloads", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("device_class_id", name="pk_cost_models"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_cost_models_device_class_id"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], name="fk_deliveries_webhook_id", ondelete="CASCADE"),
    )
    op.create_index("ix_deliveries_created_at", "deliveries", ["created_at"])
    op.create_index("ix_deliveries_next_at", "deliveries", ["next_at"])
    op.create_index("ix_deliveries_webhook_id_created_at_id", "deliveries", ["webhook_id", "created_at", "id"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("module", sa.LargeBinary(), nullable=False),
        sa.Column("space_json", sa.Text(), nullable=True),
        sa.Column("space_hash", sa.Text(), nullable=False),
        sa.Column("shapes", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("target_json", sa.Text(), nullable=False),
        sa.Column("budget", sa.JSON(), nullable=False),
        sa.Column("suggested_trials", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("force", sa.Boolean(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("labels_json", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("request_digest", sa.Text(), nullable=True),
        sa.Column("group_id", sa.Text(), nullable=True),
        sa.Column("group_position", sa.Integer(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_token", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("elapsed_s", sa.Double(), nullable=False),
        sa.Column("model_secs", sa.Double(), nullable=True),
        sa.Column("saved_secs", sa.Double(), nullable=False, server_default="0"),
        sa.Column("search_saved_secs", sa.Double(), nullable=False, server_default="0"),
        sa.Column("trials", sa.Integer(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_jobs_device_class_id"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_jobs_user_name"),
        sa.UniqueConstraint("user_name", "idempotency_key", name="uq_jobs_user_name_idempotency_key"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'partly', 'failed', 'cancelled')", name=op.f("ck_jobs_state")
        ),
    )
    op.create_index(
        "ix_jobs_asked_labels", "jobs", ["labels_json"], **_where("state = 'queued' AND labels_json <> '{}'")
    )
    op.create_index("ix_jobs_created_at_id", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_state_priority_queued_at", "jobs", ["state", "priority", "queued_at"])
    op.create_index(
        "ix_jobs_totals", "jobs", ["state", "private", "user_name", "trials", "saved_secs", "search_saved_secs"]
    )
    op.create_index("ix_jobs_user_name_created_at_id", "jobs", ["user_name", "created_at", "id"])
    op.create_index(
        "uq_jobs_group", "jobs", ["group_id", "group_position"], unique=True, **_where("group_id IS NOT NULL")
    )
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
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("builders", sa.Integer(), nullable=False),
        sa.Column("sandbox", sa.Text(), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("builders_busy", sa.Integer(), nullable=False),
        sa.Column("slot_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("slot_trial_id", sa.Text(), nullable=True),
        sa.Column("slot_use", sa.Double(), nullable=True),
        sa.Column("quarantined_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("quarantine_reason", sa.Text(), nullable=True),
        sa.Column("readmitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("drained_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("leaving", sa.Boolean(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_workers_device_class_id"),
    )
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
    op.create_table(
        "comparisons",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_comparisons"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_comparisons_job_id"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_comparisons_user_name"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_events_job_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_job_id_id", "events", ["job_id", "id"])
    op.create_table(
        "gates",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name="pk_gates"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_gates_job_id"),
    )
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
        sa.Column("trials", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("failures", sa.JSON(), nullable=False, server_default="{}"),
        sa.Column("baseline_secs", sa.Double(), nullable=True),
        sa.Column("best_secs", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_tasks_job_id"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_tasks_workload_hash"),
        sa.UniqueConstraint("job_id", "position", name="uq_tasks_job_id_position"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'joined', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_tasks_state")
        ),
    )
    op.create_index("ix_tasks_key", "tasks", ["key"])
    op.create_index("uq_tasks_running_key", "tasks", ["key"], unique=True, **_where("state = 'running'"))
    op.create_table(
        "trials",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("workload_hash", sa.Text(), nullable=False),
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("candidate_hash", sa.Text(), nullable=False),
        sa.Column("trace", sa.LargeBinary(), nullable=True),
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
        sa.Column("sandbox", sa.Text(), nullable=True),
        sa.Column("device_state", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("seed", sa.Integer(), nullable=True),
        sa.Column("features", sa.LargeBinary(), nullable=True),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("codegen_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("spans", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_trials"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_trials_device_class_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_trials_task_id"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_trials_workload_hash"),
        sa.UniqueConstraint("task_id", "candidate_hash", name="uq_trials_task_id_candidate_hash"),
        sa.UniqueConstraint("task_id", "number", name="uq_trials_task_id_number"),
        sa.CheckConstraint("(state = 'measured') = (median IS NOT NULL)", name=op.f("ck_trials_measured")),
        sa.CheckConstraint("(state = 'failed') = (failure_kind IS NOT NULL)", name=op.f("ck_trials_failed")),
        sa.CheckConstraint("state IN ('proposed', 'measured', 'failed')", name=op.f("ck_trials_state")),
    )
    op.create_index("ix_trials_created_at", "trials", ["created_at"])
    op.create_index("ix_trials_device_class_id_created_at", "trials", ["device_class_id", "created_at"])
    op.create_index("ix_trials_fastest", "trials", ["median"], **_where("median IS NOT NULL"))
    op.create_index(
        "ix_trials_fastest_of_class", "trials", ["device_class_id", "median"], **_where("median IS NOT NULL")
    )
    op.create_index("ix_trials_lost", "trials", ["worker", "finished_at"], **_where("failure_kind = 'DEVICE_LOST'"))
    op.create_index("ix_trials_proposed", "trials", ["task_id"], **_where("state = 'proposed'"))
    op.create_index(
        "ix_trials_workload_hash_device_class_id_median", "trials", ["workload_hash", "device_class_id", "median"]
    )
    op.create_index(
        "uq_trials_imported",
        "trials",
        ["workload_hash", "device_class_id", "candidate_hash"],
        unique=True,
        **_where("task_id IS NULL"),
    )
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("private_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_signing_keys"),
    )
    op.create_table(
        "imported_evidence",
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("trial_id", name="pk_imported_evidence"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name="fk_imported_evidence_trial_id"),
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
        sa.Column("at_plateau", sa.Boolean(), nullable=False),
        sa.Column("search_secs", sa.Double(), nullable=False),
        sa.Column("library", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("sandbox", sa.Text(), nullable=False),
        sa.Column("device_state", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("conditions", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("regressed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("verdict_document", sa.Text(), nullable=True),
        sa.Column("verdict_key_id", sa.Text(), nullable=True),
        sa.Column("verdict_signature", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_certificates"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_certificates_device_class_id"),
        sa.ForeignKeyConstraint(["key_id"], ["signing_keys.id"], name="fk_certificates_key_id"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name="fk_certificates_trial_id"),
        sa.ForeignKeyConstraint(["verdict_key_id"], ["signing_keys.id"], name="fk_certificates_verdict_key_id"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_certificates_workload_hash"),
    )
    op.create_index("ix_certificates_trial_id", "certificates", ["trial_id"])
    op.create_index(
        "ix_certificates_workload_hash_device_class_id_best_median",
        "certificates",
        ["workload_hash", "device_class_id", "best_median"],
    )
    op.create_table(
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
        sa.ForeignKeyConstraint(["certificate_id"], ["certificates.id"], name="fk_bests_certificate_id"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_bests_device_class_id"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_bests_workload_hash"),
    )
    for column in ("name", "op", "text", "baseline_median", "best_median", "speedup", "peak_share", "created_at"):
        key = ("workload_hash", "device_class_id")
        op.create_index(f"ix_bests_{column}_{'_'.join(key)}", "bests", [column, *key])
    op.create_table(
        "rechecks",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("certificate_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", "certificate_id", name="pk_rechecks"),
        sa.ForeignKeyConstraint(["certificate_id"], ["certificates.id"], name="fk_rechecks_certificate_id"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_rechecks_job_id"),
        sa.ForeignKeyConstraint(["key_id"], ["signing_keys.id"], name="fk_rechecks_key_id"),
    )


def downgrade() -> None:
    leaves = ("rechecks", "bests", "certificates", "imported_evidence", "trials", "tasks", "gates", "events")
    parents = ("comparisons", "checks", "workers", "trial_counts", "jobs", "deliveries", "cost_models")
    roots = (
        "workload_holders",
        "webhooks",
        "signing_keys",
        "usage",
        "tokens",
        "device_classes",
        "workloads",
        "users",
        "targets",
        "lease_losses",
        "audit",
    )
    for table in (*leaves, *parents, *roots):
        op.drop_table(table)


def _where(condition: str) -> dict[str, Any]:
    """Return what restricts an index to some rows."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
