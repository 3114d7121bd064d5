"""One warning for each cause for which a graph runs as PyTorch runs it."""

from __future__ import annotations

import warnings

_said: set[str] = set()


def say_once(cause: str) -> None:
    if cause not in _said:
        _said.add(cause)
        warnings.warn(f"a graph is left to PyTorch: {cause}", RuntimeWarning, stacklevel=3)
