"""What the host's library computes of the same inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from workers.device.library import find, library_name

Array = np.ndarray

A, B = (np.random.default_rng(seed).standard_normal((8, 8), dtype="float32") for seed in (0, 1))
BIAS = np.linspace(-4, 4, 8, dtype="float32")


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda a, b: a @ b, [A, B]),
        (lambda a, b: a @ b.T, [A, B]),
        (lambda a, b: np.maximum(a @ b, 0), [A, B]),
        (lambda a, b, c: a @ b + c, [A, B, BIAS]),
        (lambda a, b, c: np.maximum(a @ b.T + c, 0), [A, B, BIAS]),
        (lambda a, b: a @ b, [np.stack([A, B]), np.stack([B, A])]),
        (lambda a, b: a @ b, [A[:3].astype("float64"), B.astype("float64")]),
    ],
    ids=["product", "transposed", "clipped", "bias", "linear layer", "batch", "float64"],
)
def test_products_are_found(function: Callable[..., Array], inputs: list[Array]) -> None:
    wanted = function(*inputs)
    call = find([*inputs, np.zeros_like(wanted)], [False] * len(inputs) + [True], [*inputs, wanted])
    assert call is not None
    np.testing.assert_allclose(call(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("wanted", "inputs"),
    [
        (np.exp(A @ B), [A, B]),
        (A + B, [A, B]),
        (A @ B, [A, B, BIAS]),
        (A.sum(axis=0), [A]),
        ((A @ B).astype("int32"), [A, B]),
        (A @ B, [A.astype("float64"), B]),
        (np.zeros((3, 5), "float32"), [A[:3, :5], B]),
    ],
    ids=["more", "no product", "one left over", "one input", "integers", "mixed", "shapes"],
)
def test_other_functions_have_no_line(wanted: Array, inputs: list[Array]) -> None:
    assert find([*inputs, np.zeros_like(wanted)], [False] * len(inputs) + [True], [*inputs, wanted]) is None


def test_its_name_says_which_library() -> None:
    assert library_name().startswith(f"NumPy {np.__version__} (")
