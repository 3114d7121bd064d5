"""Clocks, temperature and power of the GPUs on which trials and certificates were timed."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_TABLES = ("trials", "certificates")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("device_state", sa.JSON(), nullable=True))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, "device_state")
