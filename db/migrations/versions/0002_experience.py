"""What searches learn from each other: families of workloads, features of trials, base models."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Computing a family needs TVM: rows that are there get theirs when their workload is submitted again.
    op.add_column("workloads", sa.Column("family", sa.Text(), nullable=False, server_default=""))
    op.create_index("ix_workloads_family", "workloads", ["family"])
    op.add_column("trials", sa.Column("features", sa.LargeBinary(), nullable=True))
    op.create_table(
        "cost_models",
        sa.Column("device_class_id", sa.Text(), nullable=False),
        sa.Column("tvm_version", sa.Text(), nullable=False),
        sa.Column("model", sa.LargeBinary(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("workloads", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("device_class_id", name="pk_cost_models"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_classes.id"], name="fk_cost_models_device_class_id"),
    )


def downgrade() -> None:
    op.drop_table("cost_models")
    op.drop_column("trials", "features")
    op.drop_index("ix_workloads_family", "workloads")
    op.drop_column("workloads", "family")
