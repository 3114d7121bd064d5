"""Column types that behave alike on SQLite and PostgreSQL, and the ids and times that go into them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import DateTime, Dialect, LargeBinary, Text
from sqlalchemy.types import TypeDecorator

from db.clean_text import clean_text
from db.engine.compression import compress, compress_trace, decompress, decompress_trace

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def new_id() -> str:
    """A public id: 16 random hex digits."""
    return secrets.token_hex(8)


def new_token() -> str:
    """A lease token: 32 random hex digits."""
    return secrets.token_hex(16)


def digest(*parts: str) -> str:
    """32 hex digits that name the parts, in their order."""
    return hashlib.sha256("\n".join(parts).encode(errors="replace")).hexdigest()[:32]


class UtcDateTime(TypeDecorator[datetime]):
    """A timezone-aware time that comes back as UTC; SQLite itself keeps no timezone. Naive times are refused."""

    impl = DateTime(timezone=True)
    cache_ok = True
    python_type = datetime

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError("a naive datetime has no place in the database")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class SafeText(TypeDecorator[str]):
    """Text that went through `clean_text`, in what is stored and in what is compared with it."""

    impl = Text
    cache_ok = True
    python_type = str

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else clean_text(value)


class CompressedText(TypeDecorator[str]):
    """A long text, stored as `db.engine.compression` compresses it. Statements can compare it with NULL only."""

    impl = LargeBinary
    cache_ok = True
    python_type = str

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        return None if value is None else compress(clean_text(value))

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        return None if value is None else decompress(value)


class CompressedTrace(CompressedText):
    """The same for the JSON of a trace, with the dictionary of traces."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        return None if value is None else compress_trace(clean_text(value))

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        return None if value is None else decompress_trace(value)


class EnumText(TypeDecorator[StrEnum]):
    """A member of `kind`, stored as its value. Raises ValueError for a value that `kind` does not have."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    @property
    def python_type(self) -> type[Any]:
        return self.kind

    def process_bind_param(self, value: StrEnum | str | None, dialect: Dialect) -> str | None:
        return None if value is None else self.kind(value).value

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        return None if value is None else self.kind(value)
