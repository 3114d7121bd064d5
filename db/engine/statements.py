"""Statements that are made once: to make one takes SQLAlchemy longer than to run it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from sqlalchemy import Select

_MADE_ONCE = "made_once"
_MOST = 256
"""Of each function. Not tuned."""

Arguments = ParamSpec("Arguments")
Statement = TypeVar("Statement", bound=Select[*tuple[object, ...]])


def cache_statements(make: Callable[Arguments, Statement]) -> Callable[Arguments, Statement]:
    """Return the function with the statements that it makes kept, by its arguments. What varies is a parameter."""

    @functools.lru_cache(maxsize=_MOST)
    def made(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Statement:
        return make(*args, **kwargs).execution_options(**{_MADE_ONCE: True})

    return made  # type: ignore[return-value]


def is_made_once(options: Mapping[str, object]) -> bool:
    """Return whether the statement with these execution options will come again as the same object."""
    return bool(options.get(_MADE_ONCE))


def varied(statement: Statement) -> Statement:
    """Return a statement that was made from a kept one, and will not come again as the same object."""
    return statement.execution_options(**{_MADE_ONCE: False})
