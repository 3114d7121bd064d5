"""Generators of random numbers that start anew with each test, so that a failure repeats when its test runs alone."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

_starts: list[Callable[[int], object]] = []


def numpy_draws() -> np.random.Generator:
    """Return a generator for a module of tests. What is drawn while the module is imported has a seed of its own."""
    generator = np.random.default_rng(0)

    def start(seed: int) -> None:
        generator.bit_generator.state = np.random.PCG64(seed).state

    _starts.append(start)
    return generator


def torch_draws() -> torch.Generator:
    """Return what `numpy_draws` does, of PyTorch."""
    import torch

    generator = torch.Generator().manual_seed(0)
    _starts.append(generator.manual_seed)
    return generator


def start(test: str) -> None:
    """Seed all generators, and PyTorch's own if a test has imported it, with the name of the test that begins."""
    seed = zlib.crc32(test.encode())
    for each in _starts:
        each(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(seed)
