"""Races of a schedule with its neighbours, which say what each of its decisions brings."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ablations",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("trial_id", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name="pk_ablations"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_ablations_job_id"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name="fk_ablations_trial_id"),
    )
    op.create_index("ix_ablations_trial_id", "ablations", ["trial_id"])


def downgrade() -> None:
    op.drop_table("ablations")
