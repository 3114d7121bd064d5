"""What an engine is to the process that times it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.quality.shared import Array, Shared


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case that an engine has compiled.

    Attributes:
        call: Computes the case once, as a user's loop would, and returns when the result is there.
        output: Returns the result of a call as an array.
        note: What the report says of the compilation; empty if there is nothing to say.
    """

    call: Callable[[], object]
    output: Callable[[], Array]
    note: str = ""


Prepare = Callable[[], Prepared]
"""Compiles a case with one choice of settings. Raises whatever the engine raises if it cannot."""

Variants = Callable[[Shared, int], Iterator[tuple[str, Prepare]]]
"""Yields an engine's settings by their names, for a case and a number of threads. The fastest of them counts."""
