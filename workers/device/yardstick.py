"""A yardstick: a call of a vendor's library in a closing race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.device.runner import Action

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A call of a vendor's library that computes what a function computes, as programs that a runner holds.

    ``seconds`` takes a number of calls and returns their mean after one call that does not count; for 0, the time of
    one cold call.
    """

    name: str
    seconds: Callable[[int], float]

    def do(self, action: Action, position: int, number: int) -> float:
        return self.seconds(number)


def only_result(
    inputs: Sequence[Array], outputs: Sequence[bool], expected: Sequence[Array]
) -> tuple[list[Array], Array] | None:
    """Return the arrays that a function reads, and its result; None if it has several results.

    ``outputs`` says for each argument whether the function only writes it, ``expected`` are the values of all arguments
    after a call.
    """
    operands = [array for array, is_output in zip(inputs, outputs, strict=True) if not is_output]
    results = [array for array, is_output in zip(expected, outputs, strict=True) if is_output]
    return (operands, results[0]) if len(results) == 1 else None
