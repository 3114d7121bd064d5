"""Inputs, poison and comparison: what stands between a wrong program and its publication."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.codegen.arrays import DRAWS, Array, compare, index_bound, numpy_dtype, poison, random_array, tolerance
from loopwright.codegen.kinds import Values
from loopwright.codegen.math_mode import TF32
from tests.support.draws import numpy_draws
from tuner.types import TensorInfo

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
RNG = numpy_draws()


def _normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_equal_arrays_are_close_without_error(dtype: str) -> None:
    array = (_normal(16, 16) * 4).astype(numpy_dtype(dtype))
    found = compare(array, array.copy(), tolerance(dtype))
    assert (found.close, found.max_abs_error, found.max_rel_error) == (True, 0.0, 0.0)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + ("bool",))
def test_unwritten_outputs_are_caught(dtype: str) -> None:
    info = TensorInfo((4, 4), dtype)
    reference = random_array(info, "normal", RNG, 4)
    reference[0, 0] = 0  # by chance, a number of few bits is the poison's
    result = reference.copy()
    result[0, 0] = poison(info)[0, 0]
    assert not compare(result, reference, tolerance(dtype)).close


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + ("bool",))
@pytest.mark.parametrize("draw", DRAWS)
def test_arrays_have_the_shape_and_dtype_that_was_asked_for(dtype: str, draw: str) -> None:
    info = TensorInfo((3, 5), dtype)
    for array in (random_array(info, draw, RNG, 4), poison(info)):
        assert (array.shape, array.dtype) == ((3, 5), numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_draws_are_what_they_say(dtype: str) -> None:
    normal, uniform = (
        random_array(TensorInfo((64, 64), dtype), draw, RNG, 4).astype(np.float64) for draw in ("normal", "uniform")
    )
    assert (normal < 0).any()
    assert (normal > 0).any()
    assert uniform.min() >= 0.05
    assert uniform.max() <= 1.0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_divisors_are_not_zero_and_have_both_signs(dtype: str) -> None:
    drawn = random_array(TensorInfo((5_000,), dtype, Values.NONZERO), "normal", RNG, 2)
    assert (drawn != 0).all()
    assert (drawn.astype(np.int64) < 0).any() == dtype.startswith("int")


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_are_few_and_of_each_kind(dtype: str) -> None:
    drawn = random_array(TensorInfo((20, 30), dtype), "special", RNG, 4).astype(np.float64)
    has_infinity = dtype != "float8_e4m3fn"
    assert 1 <= np.isnan(drawn).sum() <= 4
    assert (drawn == np.inf).any() == (drawn == -np.inf).any() == has_infinity
    assert (np.signbit(drawn) & (drawn == 0)).any()
    assert ((drawn != 0) & (np.abs(drawn) < 1e-4)).any() == (not dtype.startswith("float8_e4"))
    numbers = random_array(TensorInfo((20, 30), dtype, Values.NUMBER), "special", RNG, 4).astype(np.float64)
    assert not np.isnan(numbers).any()
    assert random_array(TensorInfo((), dtype), "special", RNG, 4).shape == ()


def test_a_huge_element_excuses_no_other() -> None:
    reference = _normal(8, 64).astype(np.float64)
    reference[2, 3] = 1e30
    result = reference.copy()
    result[2, 4] += 0.01
    assert not compare(result, reference, tolerance("float32")).close
    column = reference.reshape(-1)[:, None].copy()
    assert compare(column, column.copy(), tolerance("float32")).close
    assert not compare(column + 0.01, column, tolerance("float32")).close


def test_an_element_that_is_never_written_differs_also_where_the_result_is_not_a_number() -> None:
    info = TensorInfo((4,), "float32")
    outcomes = [compare(poison(info, draw), np.full(4, np.nan, np.float32), 1e-4).close for draw in DRAWS]
    assert outcomes == [True, False, False]


def test_integers_that_are_indices_are_in_range() -> None:
    args = [TensorInfo((1, 12), "float32"), TensorInfo((5,), "int64", Values.INDEX)]
    assert index_bound(args) == 5
    for dtype in ("int8", "int64"):
        drawn = random_array(TensorInfo((200,), dtype, Values.INDEX), "normal", RNG, index_bound(args))
        assert set(drawn.tolist()) == set(range(5))
    assert index_bound([TensorInfo((1,), "float32"), TensorInfo((), "int32")]) == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_narrow_integers_take_their_whole_range(dtype: str) -> None:
    drawn = random_array(TensorInfo((10_000,), dtype), "normal", RNG, 2)
    limits = np.iinfo(dtype)
    assert (drawn.min(), drawn.max()) == (limits.min, limits.max)


def test_equal_seeds_draw_equal_inputs() -> None:
    info = TensorInfo((8,), "float32")
    one, other = (random_array(info, "normal", np.random.default_rng(5), 4) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_unknown_dtypes_are_refused() -> None:
    with pytest.raises(TypeError):
        numpy_dtype("handle")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("terms", [64, 1024])
def test_a_reordered_sum_passes(dtype: str, terms: int) -> None:
    a, b = _normal(32, terms, dtype=dtype), _normal(terms, 32, dtype=dtype)
    reference = np.zeros((32, 32), dtype=dtype)
    for k in range(terms):
        reference += a[:, k : k + 1] * b[k]
    backwards = np.zeros_like(reference)
    for k in reversed(range(terms)):
        backwards += a[:, k : k + 1] * b[k]
    assert compare(backwards, reference, tolerance(dtype)).close


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("terms", [16, 1024])
def test_a_sum_that_lacks_its_last_term_is_caught(dtype: str, terms: int) -> None:
    a, b = _normal(32, terms).astype(np.float64), _normal(terms, 32).astype(np.float64)
    reference = (a @ b).astype(dtype)
    short = (a[:, :-1] @ b[:-1]).astype(dtype)
    assert not compare(short, reference, tolerance(dtype)).close


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_element_from_its_neighbour_is_caught(dtype: str) -> None:
    reference = np.linspace(-4, 4, 16).astype(numpy_dtype(dtype))
    shifted = np.roll(reference, 1)
    assert not compare(shifted, reference, tolerance(dtype)).close
    one = reference.copy()
    one[3] = reference[12]
    assert not compare(one, reference, tolerance(dtype)).close


@given(st.integers(-(2**62), 2**62), st.sampled_from([-1, 1]))
def test_integers_are_exact(value: int, off: int) -> None:
    reference = np.array([value, 0], dtype=np.int64)
    assert compare(reference.copy(), reference, tolerance("int64")).close
    assert not compare(reference + np.array([off, 0]), reference, tolerance("int64")).close


def test_a_nan_must_stand_where_the_reference_has_one() -> None:
    clean, dirty = np.array([1.0, 2.0], dtype=np.float32), np.array([1.0, np.nan], dtype=np.float32)
    assert compare(dirty.copy(), dirty, 1e-4).close
    for result, reference in ((dirty, clean), (clean, dirty)):
        found = compare(result, reference, 1e-4)
        assert not found.close
        assert found.max_abs_error == float("inf")


def test_infinities_must_agree_and_do_not_widen_the_tolerance() -> None:
    reference = np.array([np.inf, -np.inf, 1.0], dtype=np.float32)
    assert compare(reference.copy(), reference, 1e-4).close
    for wrong in ([-np.inf, -np.inf, 1.0], [np.inf, -np.inf, 1.1], [1e38, -np.inf, 1.0], [np.inf, np.nan, 1.0]):
        assert not compare(np.array(wrong, dtype=np.float32), reference, 1e-4).close


def test_the_tolerance_scales_with_the_magnitude_of_the_output() -> None:
    for scale in (1e-20, 1.0, 1e20):
        reference = np.array([1.0, 0.5, 0.0], dtype=np.float64) * scale
        assert compare(reference + 0.5e-4 * scale, reference, 1e-4).close
        assert not compare(reference + 3e-4 * scale, reference, 1e-4).close


def test_an_output_of_zeros_must_be_zeros() -> None:
    zeros = np.zeros(4, dtype=np.float32)
    assert compare(zeros.copy(), zeros, 1e-4).close
    found = compare(zeros + np.float32(1e-30), zeros, 1e-4)
    assert not found.close
    assert found.max_rel_error == float("inf")


def test_errors_are_measured() -> None:
    found = compare(np.array([1.0, 2.5]), np.array([1.0, 2.0]), 1e-9)
    assert (found.close, found.max_abs_error, found.max_rel_error) == (False, 0.5, 0.25)


def test_arrays_without_elements_are_close() -> None:
    for dtype in (np.float32, np.int32, ml_dtypes.bfloat16):
        empty = np.zeros((0, 4), dtype=dtype)
        assert compare(empty, empty, tolerance(np.dtype(dtype).name)).close


Floats = npt.NDArray[np.float32]


def _rounded(array: Floats, bits: int) -> Floats:
    """Return float32 with ``bits`` of mantissa, rounded to the nearest, ties away from zero, as cvt.rna rounds."""
    dropped = 23 - bits
    return ((array.view(np.uint32) + (1 << (dropped - 1))) & ~np.uint32((1 << dropped) - 1)).view(np.float32)


def _product_of_rounded_factors(draw: str, terms: int, bits: int) -> tuple[Floats, Floats]:
    """Return a product whose factors are rounded, and the product."""
    rng = np.random.default_rng(terms)
    a, b = (
        random_array(TensorInfo(shape, "float32"), draw, rng, 1).astype(np.float32)
        for shape in ((48, terms), (terms, 48))
    )
    return _rounded(a, bits) @ _rounded(b, bits), a @ b


@pytest.mark.parametrize("terms", [8, 64, 512, 4096])
@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_products_in_tf32_are_close_by_its_tolerance_and_not_by_that_of_float32(draw: str, terms: int) -> None:
    result, reference = _product_of_rounded_factors(draw, terms, 10)
    assert compare(result, reference, tolerance("float32", TF32)).close
    if draw == "normal":
        assert not compare(result, reference, tolerance("float32")).close


@pytest.mark.parametrize("terms", [8, 64, 512, 4096])
def test_products_of_factors_with_fewer_bits_than_tf32_are_not_close(terms: int) -> None:
    result, reference = _product_of_rounded_factors("normal", terms, 7)
    assert not compare(result, reference, tolerance("float32", TF32)).close


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "float8_e4m3fn", "int32", "bool"])
def test_tf32_narrows_no_tolerance_and_widens_none_of_integers(dtype: str) -> None:
    assert tolerance(dtype, TF32) >= tolerance(dtype)
    assert (tolerance(dtype, TF32) == 0.0) == (tolerance(dtype) == 0.0)
