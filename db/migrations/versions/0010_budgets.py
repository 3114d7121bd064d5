"""Budgets by value: device time, a target latency, the plateau, and the trials that are suggested."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("max_device_seconds", sa.Double(), nullable=True))
    op.add_column("jobs", sa.Column("target_latency_us", sa.Double(), nullable=True))
    op.add_column("jobs", sa.Column("until_plateau", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("jobs", sa.Column("suggested_trials", sa.Integer(), server_default="0", nullable=False))
    op.add_column("certificates", sa.Column("at_plateau", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    op.drop_column("certificates", "at_plateau")
    for column in ("suggested_trials", "until_plateau", "target_latency_us", "max_device_seconds"):
        op.drop_column("jobs", column)
