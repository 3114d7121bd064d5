"""What a running job does, and how long the trials of a task were in measuring slots."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("activity", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("device_secs", sa.Double(), server_default="0", nullable=False))


def downgrade() -> None:
    with op.batch_alter_table("tasks") as tasks:
        tasks.drop_column("device_secs")
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("activity")
