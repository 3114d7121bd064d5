"""The interface between an engine and the process that times it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loopwright.comparing.case import Array, Case


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model that an engine has compiled.

    Attributes:
        call: Computes the model once, as a user's loop would, and returns when the result is there.
        outputs: Returns the results of a call as arrays.
        note: What a report says of the compilation; empty if there is nothing to say.
    """

    call: Callable[[], object]
    outputs: Callable[[], list[Array]]
    note: str = ""


Prepare = Callable[[], Prepared]
"""Compiles a model with one choice of settings. Raises whatever the engine raises if it cannot."""

Variants = Callable[[Case, int], Iterator[tuple[str, Prepare]]]
"""Yields an engine's settings by their names, for a model and a number of threads. The fastest of them counts."""
