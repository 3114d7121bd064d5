"""The model itself, as its own framework runs it: what a compiled program is compared with."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

INFINITIES = (math.inf, -math.inf, 0.0, -0.0, 1e-45)
"""Special values whose results do not depend on the order of sums; 1e-45 is the smallest number of float32."""


@dataclass(frozen=True, slots=True)
class Call:
    """The tensors of one call, in order, each with ``__dlpack__``; ``dtypes`` are those of all weights and tensors.

    ``nudged``, if present, returns the outputs for inputs that differ by one unit in the last place.
    """

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    dtypes: frozenset[str]
    nudged: Callable[[], Sequence[Any]] | None = None


class Reference(Protocol):
    @property
    def name(self) -> str:
        """What runs the model: ``PyTorch`` or ``ONNX Runtime``."""

    def call(self, *, special: bool = False) -> Call | None:
        """Run the model once, on its example inputs or on drawn ones.

        With ``special``, a few elements of floating-point inputs are special values: infinities, zeros of both signs,
        the smallest number, and NaN unless the framework itself does not keep NaN.

        Returns:
            None if there are no inputs and none can be drawn, or if the model refuses special values.
        """


def with_specials(array: Any, values: Sequence[float]) -> Any:
    """Return a copy of an array with special values in random places, in at most a fourth of its elements."""
    placed = array.copy()
    flat, count = placed.reshape(-1), min(len(values), array.size // 4)
    for place, value in zip(random.Random(array.size).sample(range(array.size), count), values, strict=False):
        flat[place] = value
    return placed
