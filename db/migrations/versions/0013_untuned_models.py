"""What one run of a model takes without schedules, and the speedup from both times."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("model_baseline_secs", sa.Double(), nullable=True))
    op.add_column("jobs", sa.Column("model_speedup", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("model_speedup")
        jobs.drop_column("model_baseline_secs")
