"""Bests that are raced anew: under which conditions each was measured, and what came of it."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("certificates", sa.Column("conditions", sa.Text(), nullable=True))
    op.add_column("certificates", sa.Column("checked_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("certificates", sa.Column("regressed_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "rechecks",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("certificate_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", "certificate_id", name="pk_rechecks"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_rechecks_job_id"),
        sa.ForeignKeyConstraint(["certificate_id"], ["certificates.id"], name="fk_rechecks_certificate_id"),
    )


def downgrade() -> None:
    op.drop_table("rechecks")
    for column in ("regressed_at", "checked_at", "conditions"):
        op.drop_column("certificates", column)
