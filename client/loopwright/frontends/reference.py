"""The model itself, as its own framework runs it: what a compiled program is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Call:
    """The tensors of one call, in order, each with ``__dlpack__``; ``dtypes`` are those of all weights and tensors."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    dtypes: frozenset[str]


class Reference(Protocol):
    @property
    def name(self) -> str:
        """What runs the model: ``PyTorch`` or ``ONNX Runtime``."""

    def call(self) -> Call | None:
        """Run the model once, on its example inputs or on drawn ones; None if it has none and none can be drawn."""
