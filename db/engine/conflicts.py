"""Retry transactions that the database rolled back in favour of other ones."""

from __future__ import annotations

import functools
import logging
import random
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from db.errors import TransactionConflict

_TRIES = 5
"""A server notices a deadlock after a second by default, and a lease on it lasts eight. Not tuned."""
_FIRST_PAUSE_SECONDS = 0.01
"""On average, before the second try; twice as long before each further one. Not tuned."""
_DRAW = random.Random()  # Python's own generator is left to whoever seeds it

log = logging.getLogger("loopwright.database")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def retry_conflicts(transact: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function with one write transaction: it is called again, at most five times in all, after a conflict.

    The function must have changed nothing but the database, and must not have used up its arguments. It may raise
    `db.errors.TransactionConflict` nevertheless, if the last try fails, too.
    """

    @functools.wraps(transact)
    def retried(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for tries in range(1, _TRIES):
            try:
                return transact(*args, **kwargs)
            except TransactionConflict as error:
                log.warning("%s. Transaction of %s, try %d of %d", error, transact.__qualname__, tries, _TRIES)
            time.sleep(_DRAW.uniform(0.5, 1.5) * _FIRST_PAUSE_SECONDS * 2 ** (tries - 1))
        return transact(*args, **kwargs)

    return retried
