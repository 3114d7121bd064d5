"""Users, their tokens and use, whose each job is, and who did what."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
    # Whose everything is that there was before there were users.
    owner = {"name": "owner", "role": "admin", "created_at": sa.func.current_timestamp()}
    op.execute(users.insert().values(owner))
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.DateTime(timezone=True), nullable=name != "created_at")
            for name in ("created_at", "expires_at", "revoked_at", "used_at")
        ),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_tokens_user_name"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    op.create_index("ix_tokens_user_name_created_at", "tokens", ["user_name", "created_at"])
    op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"])
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
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("user_name", "token_id", "action", "object")),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_created_at", "audit", ["created_at"])
    op.add_column("workloads", sa.Column("shared", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.create_table(
        "workload_holders",
        sa.Column("workload_hash", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workload_hash", "user_name", name="pk_workload_holders"),
        sa.ForeignKeyConstraint(["workload_hash"], ["workloads.hash"], name="fk_workload_holders_workload_hash"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_workload_holders_user_name"),
    )
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("user_name", sa.Text(), nullable=False, server_default="owner"))
        jobs.add_column(sa.Column("private", sa.Boolean(), nullable=False, server_default=sa.false()))
        jobs.create_foreign_key(op.f("fk_jobs_user_name"), "users", ["user_name"], ["name"])
        # A key is its user's own.
        jobs.drop_constraint(op.f("uq_jobs_idempotency_key"), type_="unique")
        jobs.create_unique_constraint(op.f("uq_jobs_user_name_idempotency_key"), ["user_name", "idempotency_key"])
    op.create_index("ix_jobs_user_name_created_at_id", "jobs", ["user_name", "created_at", "id"])


def downgrade() -> None:
    # Keys were unique for each user alone. A key matters for the minutes in which a request is repeated.
    op.execute("UPDATE jobs SET idempotency_key = NULL WHERE user_name <> 'owner'")
    op.drop_index("ix_jobs_user_name_created_at_id", "jobs")
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_constraint(op.f("uq_jobs_user_name_idempotency_key"), type_="unique")
        jobs.create_unique_constraint(op.f("uq_jobs_idempotency_key"), ["idempotency_key"])
        jobs.drop_constraint(op.f("fk_jobs_user_name"), type_="foreignkey")
        jobs.drop_column("private")
        jobs.drop_column("user_name")
    op.drop_table("workload_holders")
    op.drop_column("workloads", "shared")
    for table in ("audit", "usage", "tokens", "users"):
        op.drop_table(table)
