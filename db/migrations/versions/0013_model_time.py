"""What one run of a job's whole model takes, measured."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("model_secs", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "model_secs")
