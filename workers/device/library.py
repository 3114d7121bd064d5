"""The yardstick of CPUs for a product in the closing race: NumPy's BLAS, which every worker has.

What a function computes is not known: a few NumPy calls are tried, and one that reproduces the function's result is
used. Operations other than products have no comparison, because NumPy has no kernels for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from loopwright.codegen.arrays import compare, tolerance
from workers.device.yardstick import Array, Yardstick, only_result

Call = Callable[[], Array]

_MOST_WORK = 2**33
"""Multiply-adds of the largest product that is tried, so that a call takes seconds at most."""


def library_name() -> str:
    """Return NumPy's version and the BLAS that it was built with."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"NumPy {np.__version__} ({blas['name']} {blas['version']})"


def yardstick(inputs: Sequence[Array], outputs: Sequence[bool], expected: Sequence[Array]) -> Yardstick | None:
    """Return what `find` returns as a yardstick of the closing race."""
    call = find(inputs, outputs, expected)
    return None if call is None else Yardstick(library_name(), _timed(call))


def find(inputs: Sequence[Array], outputs: Sequence[bool], expected: Sequence[Array]) -> Call | None:
    """Return a call that computes the only output among ``expected`` from ``inputs``, or None.

    ``expected`` are the values of all arguments after a call of the function. The call writes to its own memory.
    """
    if not may_compute(inputs, outputs, expected):
        return None
    function = only_result(inputs, outputs, expected)
    assert function is not None
    operands, result = function
    for call in _products(operands, result.shape):
        try:
            product = call()
        except ValueError:
            continue  # the shapes do not match
        if product.shape == result.shape and compare(product, result, tolerance(str(result.dtype))).close:
            return call
    return None


def may_compute(inputs: Sequence[Array], outputs: Sequence[bool], expected: Sequence[Array]) -> bool:
    """Return whether `find` would try a call at all, by the arrays' number, dtypes and shapes. Takes microseconds."""
    function = only_result(inputs, outputs, expected)
    if function is None:
        return False
    operands, result = function
    if result.dtype not in (np.float32, np.float64) or any(array.dtype != result.dtype for array in operands):
        return False
    return len(operands) in (2, 3) and min(operands[0].ndim, operands[1].ndim) >= 2


def _products(operands: Sequence[Array], shape: tuple[int, ...]) -> Iterator[Call]:
    """Yield products of the first two arrays, plain or with the second transposed, plus the third if there is one.

    Each product comes twice: as it is, and with negative values set to 0.
    """
    bias = operands[2] if len(operands) == 3 else None
    for left, right in ((operands[0], operands[1]), (operands[0], np.swapaxes(operands[1], -1, -2))):
        if left.shape[-1] != right.shape[-2] or np.prod(shape) * left.shape[-1] > _MOST_WORK:
            continue
        for is_clipped in (False, True):
            yield _Product(left, right, bias, is_clipped, np.empty(shape, left.dtype))


class _Product:
    """``left @ right + bias``, with negative values set to 0 if it ``is_clipped``, without allocation."""

    def __init__(self, left: Array, right: Array, bias: Array | None, is_clipped: bool, out: Array) -> None:
        self._left, self._right, self._bias, self._is_clipped, self._out = left, right, bias, is_clipped, out

    def __call__(self) -> Array:
        np.matmul(self._left, self._right, out=self._out)
        if self._bias is not None:
            np.add(self._out, self._bias, out=self._out)
        if self._is_clipped:
            np.maximum(self._out, 0, out=self._out)
        return self._out


def _timed(call: Call) -> Callable[[int], float]:
    def seconds(number: int) -> float:
        if number:
            call()
        started = time.perf_counter()
        for _ in range(max(1, number)):
            call()
        return (time.perf_counter() - started) / max(1, number)

    return seconds
