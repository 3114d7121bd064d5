"""Keyset paging: a page goes on after the last key seen, so that rows inserted meanwhile shift nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, literal, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from db.errors import InvalidPage

MAX_PAGE_SIZE = 500

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list; ``next_page_token`` is None on the last one."""

    items: tuple[Item, ...]
    next_page_token: str | None


class Keyset:
    """The order of a list, by columns whose values together are unique and never change."""

    def __init__(self, name: str, *columns: InstrumentedAttribute[Any], descending: bool = False) -> None:
        self._name = name
        self._columns = columns
        self._descending = descending

    def page(
        self,
        session: Session,
        statement: Select[*tuple[Any, ...]],
        view: Callable[..., Item],
        page_size: int,
        token: str | None,
    ) -> Page[Item]:
        """Run `statement` for one page; `view` makes an item of what the statement selects.

        Raises `InvalidPage` for a size outside 1..500 and for a token of another list.
        """
        if not 1 <= page_size <= MAX_PAGE_SIZE:
            raise InvalidPage(f"page_size must be from 1 to {MAX_PAGE_SIZE}, not {page_size}")
        if token is not None:
            here = tuple_(*self._columns)
            key = self.decode(token)
            last = tuple_(*(literal(value, column.type) for column, value in zip(self._columns, key, strict=True)))
            statement = statement.where(here < last if self._descending else here > last)
        order = [column.desc() if self._descending else column.asc() for column in self._columns]
        rows = session.execute(statement.add_columns(*self._columns).order_by(*order).limit(page_size + 1)).all()
        items = tuple(view(*row[: -len(self._columns)]) for row in rows[:page_size])
        if len(rows) <= page_size:
            return Page(items, None)
        return Page(items, self.encode(list(rows[page_size - 1][-len(self._columns) :])))

    def encode(self, key: list[Any]) -> str:
        values = [value.isoformat() if isinstance(value, datetime) else value for value in key]
        return (
            base64.urlsafe_b64encode(json.dumps([self._name, *values], allow_nan=False).encode()).decode().rstrip("=")
        )

    def decode(self, token: str) -> list[Any]:
        """Return the key in `token`; raises `InvalidPage` unless `encode` of the same list could have written it."""
        try:
            name, *values = json.loads(base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4)))
            types = [column.type.python_type for column in self._columns]
            key = [
                datetime.fromisoformat(value) if type_ is datetime else value
                for type_, value in zip(types, values, strict=True)
            ]
            fits = all(_fits(value, type_) for type_, value in zip(types, key, strict=True))
            if name == self._name and fits and self.encode(key) == token:
                return key
        except (ValueError, TypeError, RecursionError):
            pass
        raise InvalidPage("this page_token does not belong to this list")


def _fits(value: Any, type_: type) -> bool:
    """Return whether a column of `type_` can hold the value, on both databases."""
    if type(value) is not type_:
        return False
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return not isinstance(value, int) or abs(value) < 2**31
