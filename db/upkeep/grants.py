"""The rights of the service's role on PostgreSQL: read and write rows, but change no table."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, text

from db.models import Base

_REVISION = "alembic_version"


class CannotGrant(Exception):
    """The role cannot be given rights; the message says why."""


def grant(connection: Connection, role: str) -> None:
    """Grant ``role`` the rights that the service needs in the current schema, and revoke all others on the tables.

    The tables must be at the newest revision, and the connection's role must own them. Raises CannotGrant.
    """
    if connection.dialect.name != "postgresql":
        raise CannotGrant("only PostgreSQL has roles; anyone who can open an SQLite file can change its tables")
    if connection.scalar(text("SELECT true FROM pg_roles WHERE rolname = :role"), {"role": role}) is None:
        raise CannotGrant(f"there is no role {role!r}; create it first: CREATE ROLE {role} LOGIN PASSWORD '…'")
    if connection.scalar(
        text("SELECT rolsuper OR pg_has_role(:role, current_user, 'MEMBER') FROM pg_roles WHERE rolname = :role"),
        {"role": role},
    ):
        raise CannotGrant(f"the role {role!r} is a superuser or has the rights of the tables' owner; use another role")
    for statement in _statements(connection, role):
        connection.exec_driver_sql(statement)


def _statements(connection: Connection, role: str) -> Iterator[str]:
    quote = connection.dialect.identifier_preparer
    database, schema = connection.execute(text("SELECT current_database(), current_schema()")).one()
    tables = ", ".join(quote.format_table(table) for table in Base.metadata.sorted_tables)
    to = quote.quote_identifier(role)
    yield f"GRANT CONNECT ON DATABASE {quote.quote_identifier(database)} TO {to}"
    # Servers before 15 let everybody make tables there.
    yield f"REVOKE CREATE ON SCHEMA {quote.quote_identifier(schema)} FROM PUBLIC, {to}"
    yield f"GRANT USAGE ON SCHEMA {quote.quote_identifier(schema)} TO {to}"
    yield f"REVOKE ALL ON {tables}, {_REVISION} FROM {to}"
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {to}"
    yield f"GRANT SELECT ON {_REVISION} TO {to}"
    yield f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {quote.quote_identifier(schema)} TO {to}"
