"""What jobs are compared with once their tasks are done."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gates",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name="pk_gates"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_gates_job_id"),
    )


def downgrade() -> None:
    op.drop_table("gates")
