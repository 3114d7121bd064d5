"""The version of codegen that a trial's trace needs, beside the version of TVM."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # What was stored before there was a version needs the first one.
    op.add_column("trials", sa.Column("codegen_version", sa.Integer(), nullable=False, server_default="1"))


def downgrade() -> None:
    op.drop_column("trials", "codegen_version")
