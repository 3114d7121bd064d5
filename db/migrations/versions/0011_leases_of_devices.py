"""Leases of devices, by which several controllers share them."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "controllers",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("demands", sa.JSON(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_controllers"),
    )
    with op.batch_alter_table("workers") as workers:
        workers.add_column(sa.Column("leased_to", sa.Text(), nullable=True))
        workers.create_foreign_key("fk_workers_leased_to", "controllers", ["leased_to"], ["owner"], ondelete="SET NULL")


def downgrade() -> None:
    with op.batch_alter_table("workers") as workers:
        workers.drop_constraint("fk_workers_leased_to", type_="foreignkey")
        workers.drop_column("leased_to")
    op.drop_table("controllers")
