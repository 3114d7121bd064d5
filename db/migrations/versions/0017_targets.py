"""Groups: the jobs of one submission for several targets."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_GROUPED = sa.text("group_id IS NOT NULL")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("group_id", sa.Text(), nullable=True))
    op.add_column("jobs", sa.Column("group_position", sa.Integer(), nullable=True))
    op.create_index(
        "uq_jobs_group",
        "jobs",
        ["group_id", "group_position"],
        unique=True,
        sqlite_where=_GROUPED,
        postgresql_where=_GROUPED,
    )


def downgrade() -> None:
    op.drop_index("uq_jobs_group", "jobs")
    op.drop_column("jobs", "group_position")
    op.drop_column("jobs", "group_id")
