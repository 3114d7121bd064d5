"""The level of the walls under which a worker measures, a trial was measured and a certificate was raced."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TABLES = ("workers", "trials", "certificates")


def upgrade() -> None:
    # Nobody knows the level of what is stored.
    for table in _TABLES:
        op.add_column(table, sa.Column("sandbox", sa.Text(), nullable=True))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, "sandbox")
