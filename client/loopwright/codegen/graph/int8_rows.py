"""Activations that are rounded to int8 where a model permits it: rows of products with weights of few bits in blocks.

A product of int8 with a block of a weight is several times as fast as one of float32, and one of few rows reads the
weight in the same time. llama.cpp rounds in this way, and so does ONNX Runtime with ``accuracy_level`` 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx

from loopwright.codegen.extremes import infinity, larger

INT8_ACTIVATIONS = "loopwright.int8_activations"
"""The attribute of a module whose activations may be rounded. Its functions say by themselves what they compute."""
STEPS = 127
"""The largest magnitude of an integer, which stands for the largest magnitude of a block."""


def permit_int8_activations(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a module, which is not lowered yet, whose activations may be rounded."""
    return mod.with_attr(INT8_ACTIVATIONS, True)


def permits_int8_activations(mod: tvm.IRModule) -> bool:
    """Return whether a module's activations may be rounded, or are, once it is lowered."""
    return bool(mod.attrs) and bool(mod.attrs.get(INT8_ACTIVATIONS))


def largest_magnitudes(blocks: te.Tensor) -> te.Tensor:
    """Return the largest magnitude of each block of float32 ``[n, size]``, ``[n, 1]``, and NaN for one with NaN."""
    largest = te.comm_reducer(larger, lambda dtype: infinity(dtype, -1), name="extreme")
    k = te.reduce_axis((0, blocks.shape[1]), "k")
    return te.compute((blocks.shape[0], 1), lambda i, _: largest(tirx.abs(blocks[i, k]), axis=k), name="magnitude")


def rounded(emit: Callable[[Any], Any], blocks: Any, magnitude: Any = None) -> tuple[Any, Any]:
    """Return blocks of float32 ``[n, size]`` as integers, and what these are multiplied by, times `STEPS`.

    Args:
        magnitude: their `largest_magnitudes`, if a function computes them already.

    Returns:
        The integers, int8 ``[n, size]``, and the largest magnitude of each block, ``[n, 1]``. An infinity is the only
        integer of its block that is not 0, and NaN makes a block of NaN.
    """
    if magnitude is None:
        magnitude = emit(relax.op.max(emit(relax.op.abs(blocks)), -1, keepdims=True))
    # The inverse of 0 is infinite, and 0 times that NaN.
    is_zero = emit(relax.op.equal(magnitude, relax.const(0, "float32")))
    # An infinity among numbers is 127 among zeros, times infinity.
    finite = emit(relax.op.minimum(magnitude, relax.const(np.finfo("float32").max, "float32")))
    inverse = emit(relax.op.divide(relax.const(STEPS, "float32"), finite))
    inverse = emit(relax.op.where(is_zero, relax.const(0, "float32"), inverse))
    scaled = emit(relax.op.multiply(blocks, inverse))
    one, zero = relax.const(1, "float32"), relax.const(0, "int8")
    return emit(relax.op.quantize(scaled, one, zero, 0, "int8")), magnitude
