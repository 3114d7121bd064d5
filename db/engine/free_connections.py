"""Wait for a connection of a server that has none left: other processes return theirs.

A server has ``max_connections`` in all. One that has given them out is not away: a process that has connections works
on with those.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Sequence
from typing import Any

import psycopg
from sqlalchemy import Dialect

PATIENCE_SECONDS = 20.0
"""Less than a thread waits for a connection of its own process. Not tuned."""
_PAUSE_SECONDS = 0.25
"""On average, between two tries. Not tuned."""
_NONE_LEFT = re.compile(r"too many clients already|remaining connection slots|too many connections for")
"""PostgreSQL's words. libpq passes on no code of an error before there is a connection."""
_DRAW = random.Random()  # Python's own generator is left to whoever seeds it

log = logging.getLogger("loopwright.database")


def connect(dialect: Dialect, _record: object, arguments: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Return a connection of the driver; SQLAlchemy calls it in place of the driver's own function.

    While the server has none left, try again for `PATIENCE_SECONDS`. Raise `psycopg.OperationalError`.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    is_first = True
    while True:
        try:
            return dialect.connect(*arguments, **parameters)
        except psycopg.OperationalError as error:
            if _NONE_LEFT.search(str(error)) is None or time.monotonic() > until:
                raise
        if is_first:
            is_first = False
            log.warning(
                "the database server has no connection left for this process, which waits for one. Raise the server's "
                "max_connections, or lower LOOPWRIGHT_DATABASE_CONNECTIONS of the API processes and controllers"
            )
        time.sleep(_DRAW.uniform(0.5, 1.5) * _PAUSE_SECONDS)
