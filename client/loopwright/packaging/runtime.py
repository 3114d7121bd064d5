"""Tensors and timed calls by TVM's runtime alone, without the package ``tvm`` and its compiler."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm_ffi

from loopwright.codegen.arrays import Array, numpy_dtype


def empty(shape: Sequence[int], dtype: str) -> Any:
    """Return a tensor of the host, aligned as tuned code wants it."""
    allocate = tvm_ffi.get_global_func("runtime.TVMTensorAllocWithScope")
    return allocate(
        tvm_ffi.Shape([int(extent) for extent in shape]), tvm_ffi.dtype(dtype), tvm_ffi.device("cpu", 0), None
    )


def tensor(array: Array, dtype: str) -> Any:
    """Return a copy of an array as a tensor."""
    made = empty(array.shape, dtype)
    source = np.ascontiguousarray(array, dtype=numpy_dtype(dtype))
    tvm_ffi.get_global_func("runtime.TVMTensorCopyFromBytes")(made, _address(source), source.nbytes)
    return made


def array(made: Any) -> Array:
    """Return a copy of a tensor as an array."""
    result = np.empty(tuple(made.shape), dtype=numpy_dtype(str(made.dtype)))
    tvm_ffi.get_global_func("runtime.TVMTensorCopyToBytes")(made, _address(result), result.nbytes)
    return result


def seconds(module: Any, function: str, arguments: Sequence[Any], number: int) -> float:
    """Return the mean seconds of ``number`` calls, after one that does not count."""
    evaluator = tvm_ffi.get_global_func("runtime.RPCTimeEvaluator")
    # Of the CPU, once; no minimum, no pause, no flushing of caches, nothing called before.
    timer = evaluator(module, function, 1, 0, number, 1, 0, 100, 0, 1, 0, "")
    (mean,) = struct.unpack("@d", bytes(timer(*arguments)))
    return float(mean)


def _address(values: Array) -> ctypes.c_void_p:
    return values.ctypes.data_as(ctypes.c_void_p)
