"""Random inputs, poisoned outputs and their comparison, by dtype. NumPy only."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from loopwright.codegen.kinds import Values
from loopwright.codegen.math_mode import FP32, TF32, MathMode

Array = npt.NDArray[np.generic]


class TensorInfo(Protocol):
    """A buffer argument: its shape (elements) and TVM dtype."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...

    @property
    def values(self) -> Values: ...


DRAWS = ("normal", "uniform", "special")
"""Kinds of input sets: standard normal (both signs); uniform in [0.1, 1) (for log, sqrt and division); and normal with
a few NaN, infinities, zeros of both signs, denormal, large and small numbers."""
_SPECIALS = 2
"""How often an array holds each special value, in random places: with more, few sums would have none. Not tuned."""
_WIDE = 100
"""The largest magnitude of integers of 32 and 64 bits, which are often multiplied and summed. Not tuned."""

_ROW = 16
"""Elements of a row that has a scale of its own."""
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

    Indices stay in [0, ``index_bound``). Other integers take the whole range of their dtype if it is one of 8 or 16
    bits, and values in [-100, 100] if it is wider.
    """
    dtype = numpy_dtype(info.dtype)
    if info.dtype == "bool":
        return rng.integers(0, 2, info.shape).astype(np.bool_)
    if np.issubdtype(dtype, np.integer):
        return _integers(info, dtype, rng, index_bound)
    if draw == "uniform":
        array = 0.1 + 0.9 * rng.random(info.shape, dtype=np.float32)
    else:
        array = rng.standard_normal(info.shape, dtype=np.float32)
    if info.values is Values.SMALL:
        longest = max(info.shape, default=1)
        array /= longest if draw == "uniform" else 2 * longest**0.5
    array = array.astype(dtype)
    if draw == "special":
        values = specials(info, rng)[: array.size]
        array.reshape(-1)[rng.permutation(array.size)[: len(values)]] = values
    return array


def _integers(info: TensorInfo, dtype: np.dtype[np.generic], rng: np.random.Generator, index_bound: int) -> Array:
    limits = np.iinfo(info.dtype)
    least, largest = (int(limits.min), int(limits.max)) if dtype.itemsize < 4 else (max(int(limits.min), -_WIDE), _WIDE)
    if info.values is Values.INDEX:
        least, largest = 0, min(int(limits.max), index_bound - 1)
    array: Array = rng.integers(least, largest, info.shape, endpoint=True).astype(dtype)
    return np.where(array == 0, array.dtype.type(1), array) if info.values is Values.NONZERO else array


def specials(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Return special values of a floating-point dtype, some of each, in random order: NaN only if any may occur.

    The large ones have one sign, differ, and have squares whose sums are finite. Otherwise a sum of them would depend
    on its order.
    """
    dtype = numpy_dtype(info.dtype)
    limits = importlib.import_module(dtype.type.__module__).finfo(dtype)
    small, large = float(limits.smallest_subnormal), float(limits.max) ** 0.5 / 16
    values = [0.0, -0.0, small, -small, float(limits.smallest_normal)]
    if np.isinf(np.asarray(np.inf).astype(dtype)):  # float8_e4m3fn has none
        values += [np.inf, -np.inf]
    if info.values is Values.ANY:
        values.append(np.nan)
    drawn = [*values * _SPECIALS, *large * rng.uniform(0.5, 1.0, _SPECIALS)]
    return rng.permutation(np.asarray(drawn).astype(dtype))


def poison(info: TensorInfo, draw: str = DRAWS[0]) -> Array:
    """Return an output buffer for a call with inputs of a kind, whose elements are unlikely to be results.

    They are NaN for one kind of inputs and a number for the others: an element that is never written differs from the
    result in one of them, also where the result is NaN.
    """
    dtype = numpy_dtype(info.dtype)
    if info.dtype == "bool":
        return np.full(info.shape, draw == DRAWS[0])
    if np.issubdtype(dtype, np.integer):
        return np.full(info.shape, np.iinfo(info.dtype).max - 12).astype(dtype)
    return np.full(info.shape, np.nan if draw == DRAWS[0] else -77.0).astype(dtype)


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


def compare(
    result: Array, reference: Array, rtol: float, allowance: npt.NDArray[np.float64] | float = 0.0
) -> Comparison:
    """Return whether |result - reference| <= rtol * (|reference| + scale) + allowance everywhere; NaN equals NaN.

    The scale is that of the row (the last axis, or all if it is short): its largest magnitude, but at most eight times
    the median of those that are not 0. A single huge element excuses no other.
    """
    if _same_bits(result, reference):
        return Comparison(True, 0.0, 0.0)
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
        close=bool((difference <= rtol * (magnitude + _scale(magnitude)) + allowance).all()),
        max_abs_error=worst,
        max_rel_error=worst / largest if largest else (0.0 if worst == 0.0 else float("inf")),
    )


def _same_bits(one: Array, other: Array) -> bool:
    """Return whether two arrays are equal to the last bit, as arguments are that a function only reads."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _scale(magnitude: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the scale of each row of magnitudes, in a shape that they broadcast with."""
    long = magnitude.ndim > 0 and magnitude.shape[-1] >= _ROW
    axis = -1 if long else None
    if magnitude.size == 0:
        return np.zeros(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row of zeros has no median
        median = np.nanmedian(np.where(magnitude > 0, magnitude, np.nan), axis=axis, keepdims=True)
    scale: npt.NDArray[np.float64] = np.minimum(magnitude.max(axis=axis, keepdims=True), 8 * np.nan_to_num(median))
    return scale
