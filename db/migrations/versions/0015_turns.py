"""When a job took its place in the queue."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_BEFORE, _AFTER = ["state", "priority", "created_at"], ["state", "priority", "queued_at"]


def upgrade() -> None:
    op.add_column("jobs", sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE jobs SET queued_at = created_at")
    with op.batch_alter_table("jobs") as jobs:
        jobs.alter_column("queued_at", existing_type=sa.DateTime(timezone=True), nullable=False)
    op.drop_index("ix_jobs_state_priority_created_at", "jobs")
    op.create_index("ix_jobs_state_priority_queued_at", "jobs", _AFTER)


def downgrade() -> None:
    op.drop_index("ix_jobs_state_priority_queued_at", "jobs")
    op.create_index("ix_jobs_state_priority_created_at", "jobs", _BEFORE)
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("queued_at")
