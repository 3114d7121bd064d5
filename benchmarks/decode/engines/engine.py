"""What an engine is: a decoder that takes a prompt, and then one token after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Array = Any
"""Of NumPy."""


class Decoding(Protocol):
    """A loaded decoder."""

    def prefill(self, ids: Sequence[int]) -> Array:
        """Forget all tokens, take these, and return the logits of the last one."""

    def step(self, token: int) -> Array:
        """Take one more token, and return its logits."""


@dataclass(frozen=True, slots=True)
class Given:
    """What each engine is given.

    Attributes:
        folder: Of the weights, the ONNX files and the GGUF file of a precision.
        prompt: Tokens of the prompt.
        variant: Of an engine that has several.
    """

    folder: Path
    precision: str
    threads: int
    prompt: int
    variant: str = ""


Load = Callable[[Given], Decoding]
"""The function ``load`` of an engine's module."""
