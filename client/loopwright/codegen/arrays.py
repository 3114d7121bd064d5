"""Random inputs, poisoned outputs and their comparison, by dtype. NumPy only."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from loopwright.codegen.math_mode import FP32, TF32, MathMode

Array = npt.NDArray[np.generic]


class TensorInfo(Protocol):
    """A buffer argument: its shape (elements) and TVM dtype."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...


DRAWS = ("normal", "uniform")
"""Kinds of input sets: standard normal (both signs), and uniform in [0.1, 1) (for log, sqrt and division)."""

_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Relative tolerance; the absolute one is as much of the largest magnitude that the reference holds. Reordered sums
of n terms differ by about sqrt(n) units in the last place, which stays an order of magnitude below these."""
_TF32_TOLERANCE = 2.0**-10
"""TF32 has 10 bits of mantissa (PTX ISA, "Alternate floating-point data formats"), so that rounding a factor to the
nearest one changes it by 2^-11 of itself at most, and a product by 2^-10. So does a sum of products of one sign. Where
signs are random, errors are, too, and the sum of n of them grows by sqrt(n), as the sum itself does: they stay at 3e-4
(2^-11 times sqrt(2/3) times 0.74, for a mantissa of either factor that is spread evenly over its logarithms) of the
standard deviation of the results, whatever n is. (Higham and Mary, A new approach to probabilistic rounding error
analysis, SIAM Journal on Scientific Computing 41, 2019.)"""


def tolerance(dtype: str, math: MathMode = FP32) -> float:
    """Return the relative tolerance for an output dtype; 0 (exact) for integers and booleans.

    ``math`` is the mode of the function; the reference multiplies in float32 in either mode.
    """
    if dtype.startswith("float8"):
        return 0.25
    exact = _TOLERANCE.get(dtype, 0.0)
    return max(exact, _TF32_TOLERANCE) if exact and math == TF32 else exact


def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """Return NumPy's dtype for TVM's name (bfloat16 and float8 by ml_dtypes). Raises TypeError if there is none."""
    if dtype == "bool":
        return np.dtype(np.bool_)
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), dtype, dtype))


def random_array(info: TensorInfo, draw: str, rng: np.random.Generator, index_bound: int) -> Array:
    """Return a random input of a shape and dtype.

    Integers of 32 and 64 bits are often indices, so they stay in [0, ``index_bound``); narrower ones take the
    whole range of their dtype.
    """
    dtype = numpy_dtype(info.dtype)
    if info.dtype == "bool":
        return rng.integers(0, 2, info.shape).astype(np.bool_)
    if np.issubdtype(dtype, np.integer):
        if dtype.itemsize >= 4:
            return rng.integers(0, index_bound, info.shape).astype(dtype)
        limits = np.iinfo(info.dtype)
        return rng.integers(limits.min, limits.max, info.shape, endpoint=True).astype(dtype)
    if draw == "normal":
        return rng.standard_normal(info.shape, dtype=np.float32).astype(dtype)
    return (0.1 + 0.9 * rng.random(info.shape, dtype=np.float32)).astype(dtype)


def poison(info: TensorInfo) -> Array:
    """Return an output buffer for a call, whose elements are NaN or a value that results are unlikely to have."""
    dtype = numpy_dtype(info.dtype)
    if info.dtype == "bool":
        return np.ones(info.shape, dtype=dtype)
    if np.issubdtype(dtype, np.integer):
        return np.full(info.shape, np.iinfo(info.dtype).max - 12).astype(dtype)
    return np.full(info.shape, np.nan).astype(dtype)


def index_bound(args: Sequence[TensorInfo]) -> int:
    """Return an exclusive bound that keeps random indices inside every axis longer than one element."""
    extents = [extent for info in args for extent in info.shape if extent > 1]
    return max(1, min(extents, default=1))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far a result is from the reference; both errors are 0 for equal arrays, infinite where NaNs disagree."""

    close: bool
    max_abs_error: float
    max_rel_error: float


def compare(result: Array, reference: Array, rtol: float) -> Comparison:
    """Return whether |result - reference| <= rtol * (|reference| + max|reference|) everywhere; NaN equals NaN."""
    if rtol == 0.0:
        wrong = result != reference
        difference = np.abs(result.astype(np.float64) - reference.astype(np.float64))
        worst = float(difference.max(initial=0.0))
        return Comparison(not wrong.any(), worst, worst)
    got, wanted = result.astype(np.float64), reference.astype(np.float64)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(got - wanted))
    difference = np.where(np.isnan(difference), np.inf, difference)
    magnitude = np.abs(np.where(np.isfinite(wanted), wanted, 0.0))
    largest = float(magnitude.max(initial=0.0))
    worst = float(difference.max(initial=0.0))
    return Comparison(
        close=bool((difference <= rtol * (magnitude + largest)).all()),
        max_abs_error=worst,
        max_rel_error=worst / largest if largest else (0.0 if worst == 0.0 else float("inf")),
    )
