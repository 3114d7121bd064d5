"""Workloads know their family."""

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


def downgrade() -> None:
    op.drop_index("ix_workloads_family", "workloads")
    op.drop_column("workloads", "family")
