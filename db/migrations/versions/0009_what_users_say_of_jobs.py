"""Tags and descriptions of jobs, what a job did when, which model predicted a trial, and for whom a worker waits."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("tags", sa.Text(), server_default="", nullable=False))
    op.add_column("jobs", sa.Column("description", sa.Text(), server_default="", nullable=False))
    op.add_column("jobs", sa.Column("phases", sa.JSON(), server_default="[]", nullable=False))
    op.add_column("trials", sa.Column("predicted_by", sa.Text(), nullable=True))
    op.add_column("workers", sa.Column("waits_for", sa.Text(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("workers") as workers:
        workers.drop_column("waits_for")
    with op.batch_alter_table("trials") as trials:
        trials.drop_column("predicted_by")
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("phases")
        jobs.drop_column("description")
        jobs.drop_column("tags")
