"""Comparisons of jobs' models with other engines."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
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


def downgrade() -> None:
    op.drop_table("comparisons")
