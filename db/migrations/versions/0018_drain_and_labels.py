"""Draining of workers, and labels of workers and jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_ASKED = sa.text("state = 'queued' AND labels_json <> '{}'")


def upgrade() -> None:
    op.add_column("workers", sa.Column("drained_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("workers", sa.Column("leaving", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("workers", sa.Column("labels", sa.JSON(), server_default="{}", nullable=False))
    op.add_column("jobs", sa.Column("labels_json", sa.Text(), server_default="{}", nullable=False))
    op.create_index("ix_jobs_asked_labels", "jobs", ["labels_json"], sqlite_where=_ASKED, postgresql_where=_ASKED)


def downgrade() -> None:
    op.drop_index("ix_jobs_asked_labels", "jobs")
    op.drop_column("jobs", "labels_json")
    for column in ("labels", "leaving", "drained_at"):
        op.drop_column("workers", column)
