"""Alembic's entry; `db.migrate` runs it and hands over the connection, within a transaction."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy.types import TypeDecorator

from db.models import Base


def plain_type(kind: str, item: Any, _context: AutogenContext) -> str | Literal[False]:
    """A revision names the plain type below ours: it must still run when `db.engine.columns` has changed."""
    return f"sa.{item.impl_instance!r}" if kind == "type" and isinstance(item, TypeDecorator) else False


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    compare_type=True,
    render_as_batch=True,
    render_item=plain_type,
)
with context.begin_transaction():
    context.run_migrations()
