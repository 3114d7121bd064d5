"""Keyset paging: a page goes on after the last key seen, so that rows inserted meanwhile shift nothing."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import Integer, Select, bindparam, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from db.engine.statements import is_made_once
from db.errors import InvalidPage

MAX_PAGE_SIZE = 500
_ROWS = "page_rows"
_LAST = "page_last_"
"""Names of the parameters of a page."""

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
        parameters: Mapping[str, object] | None = None,
    ) -> Page[Item]:
        """Run `statement` with its ``parameters`` for one page; `view` makes an item of what the statement selects.

        Raises `InvalidPage` for a size outside 1..500 and for a token of another list.
        """
        if not 1 <= page_size <= MAX_PAGE_SIZE:
            raise InvalidPage(f"page_size must be from 1 to {MAX_PAGE_SIZE}, not {page_size}")
        facts = {**(parameters or {}), _ROWS: page_size + 1}
        if token is not None:
            facts |= {f"{_LAST}{place}": value for place, value in enumerate(self.decode(token))}
        rows = session.execute(self._paged(statement, goes_on=token is not None), facts).all()
        items = tuple(view(*row[: -len(self._columns)]) for row in rows[:page_size])
        if len(rows) <= page_size:
            return Page(items, None)
        return Page(items, self.encode(list(rows[page_size - 1][-len(self._columns) :])))

    def _paged(self, statement: Select[*tuple[Any, ...]], *, goes_on: bool) -> Select[*tuple[Any, ...]]:
        """Return the statement of the first page, or of one that ``goes_on`` after a key."""
        paged = _paged_once if is_made_once(statement.get_execution_options()) else _paged
        return paged(self._columns, statement, self._descending, goes_on)

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


def _paged(
    columns: Sequence[InstrumentedAttribute[Any]],
    statement: Select[*tuple[Any, ...]],
    descending: bool,
    goes_on: bool,
) -> Select[*tuple[Any, ...]]:
    if goes_on:
        here = tuple_(*columns)
        last = tuple_(*(bindparam(f"{_LAST}{place}", type_=column.type) for place, column in enumerate(columns)))
        statement = statement.where(here < last if descending else here > last)
    order = [column.desc() if descending else column.asc() for column in columns]
    return statement.add_columns(*columns).order_by(*order).limit(bindparam(_ROWS, type_=Integer))


_paged_once = functools.lru_cache(maxsize=256)(_paged)


def _fits(value: Any, type_: type) -> bool:
    """Return whether a column of `type_` can hold the value, on both databases."""
    if type(value) is not type_:
        return False
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return not isinstance(value, int) or abs(value) < 2**31
