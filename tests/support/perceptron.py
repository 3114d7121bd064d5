"""The model of ``scripts/demo``, its arguments, and what it computes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from service.demo import MODEL as PERCEPTRON

__all__ = ["PERCEPTRON", "Array", "inputs", "scores"]

Array = npt.NDArray[np.float32]


def inputs() -> dict[str, Array]:
    """``main``'s arguments by name, in order."""
    generator = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"x": (1, 784), "w0": (784, 128), "b0": (128,), "w1": (128, 10), "b1": (10,)}
    return {name: generator.standard_normal(shape, dtype="float32") for name, shape in shapes.items()}


def scores(x: Array, w0: Array, b0: Array, w1: Array, b1: Array) -> Array:
    """What the perceptron computes, by NumPy; shape (1, 10)."""
    return np.maximum(x @ w0 + b0, 0) @ w1 + b1
