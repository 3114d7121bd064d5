"""Limits of concurrent use: the most for each caller, and the most for all callers together."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from service.problems import ProblemError


class Shares:
    """Counts what callers have. Thread-safe.

    Args:
        noun: of what is shared, in the plural, for the problem that refuses it.
        each: the most that one caller may have.
        total: the most that all callers may have together; None: any number.
    """

    def __init__(self, noun: str, *, each: int, total: int | None = None) -> None:
        self._noun = noun
        self._each = each
        self._total = total
        self._taken: Counter[str] = Counter()
        self._sum = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """The sum over all callers."""
        with self._lock:
            return self._sum

    @contextlib.contextmanager
    def hold(self, caller: str, amount: int = 1) -> Iterator[None]:
        """Take ``amount`` until the context ends. Raises what `take` raises."""
        self.take(caller, amount)
        try:
            yield
        finally:
            self.give_back(caller, amount)

    def take(self, caller: str, amount: int = 1) -> None:
        """Take ``amount`` more. Raise ProblemError: 429 above the caller's limit, 503 above that of all callers."""
        with self._lock:
            if self._taken[caller] + amount > self._each:
                detail = f"One user may have {self._each} {self._noun} at a time. Wait until some of them have ended."
                raise ProblemError(429, "too-many-requests", detail, headers={"Retry-After": "1"})
            if self._total is not None and self._sum + amount > self._total:
                detail = (
                    f"The service has {self._total} {self._noun} open, which is its limit. Try again in a few seconds."
                )
                raise ProblemError(503, "busy", detail, headers={"Retry-After": "2"})
            self._taken[caller] += amount
            self._sum += amount

    def give_back(self, caller: str, amount: int = 1) -> None:
        with self._lock:
            self._sum -= amount
            self._taken[caller] -= amount
            if self._taken[caller] == 0:
                del self._taken[caller]
