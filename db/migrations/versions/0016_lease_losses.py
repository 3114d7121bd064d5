"""How many leases of jobs were lost."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lease_losses",
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("losses", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cause", name=op.f("pk_lease_losses")),
    )


def downgrade() -> None:
    op.drop_table("lease_losses")
