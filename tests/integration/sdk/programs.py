"""The model that these tests tune: a perceptron of the size that FashionMNIST takes, batch 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

PERCEPTRON = """
@I.ir_module
class Perceptron:
    @R.function
    def main(
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((784, 128), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((128, 10), "float32"),
        b1: R.Tensor((10,), "float32"),
    ) -> R.Tensor((1, 10), "float32"):
        with R.dataflow():
            hidden = R.matmul(x, w0)
            shifted = R.add(hidden, b0)
            active = R.nn.relu(shifted)
            scores = R.matmul(active, w1)
            out = R.add(scores, b1)
            R.output(out)
        return out
"""

Array = npt.NDArray[np.float32]


def inputs() -> dict[str, Array]:
    """``main``'s arguments by name, in order."""
    generator = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"x": (1, 784), "w0": (784, 128), "b0": (128,), "w1": (128, 10), "b1": (10,)}
    return {name: generator.standard_normal(shape, dtype="float32") for name, shape in shapes.items()}


def scores(x: Array, w0: Array, b0: Array, w1: Array, b1: Array) -> Array:
    """What the perceptron computes, by NumPy; shape (1, 10)."""
    return np.maximum(x @ w0 + b0, 0) @ w1 + b1
