"""How large the arguments of a workload are, so that the nearest of a family are found by an index."""

import json
import math

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_AT_ONCE = 1000


def upgrade() -> None:
    op.add_column("workloads", sa.Column("log_size", sa.Double(), nullable=True))
    workloads = sa.table(
        "workloads", sa.column("hash", sa.Text()), sa.column("args", sa.Text()), sa.column("log_size", sa.Double())
    )
    connection, last = op.get_bind(), ""
    while rows := connection.execute(
        sa.select(workloads.c.hash, sa.cast(workloads.c.args, sa.Text()))
        .where(workloads.c.hash > last)
        .order_by(workloads.c.hash)
        .limit(_AT_ONCE)
    ).all():
        connection.execute(
            sa.update(workloads).where(workloads.c.hash == sa.bindparam("key")).values(log_size=sa.bindparam("size")),
            [{"key": key, "size": _log_size(json.loads(args))} for key, args in rows],
        )
        last = rows[-1][0]
    op.drop_index("ix_workloads_family", "workloads")
    op.create_index("ix_workloads_family_log_size", "workloads", ["family", "log_size"])


def downgrade() -> None:
    op.drop_index("ix_workloads_family_log_size", "workloads")
    op.create_index("ix_workloads_family", "workloads", ["family"])
    with op.batch_alter_table("workloads") as workloads:
        workloads.drop_column("log_size")


def _log_size(args: list[list[list[int]]]) -> float:
    return sum(math.log(max(extent, 1)) for shape, *_ in args for extent in shape)
