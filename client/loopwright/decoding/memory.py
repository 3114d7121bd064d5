"""Tensors one behind the other in one piece of memory: the weights and the cache of a decoder. Needs TVM.

Each token reads all weights once. In pages of 4 KiB, the processor begins anew at each page to fetch ahead: a product
of one row with weights of 8 bits read 18 GB/s on each of two threads, and 29 GB/s in huge pages of 2 MiB (AMD Zen 4).
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm

from loopwright.codegen.arrays import numpy_dtype
from loopwright.codegen.host.huge_pages import HUGE_PAGE

_ALIGNMENT = 64
"""Bytes of which each tensor begins at a multiple, as TVM's programs require."""
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Form:
    """The shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: str

    @staticmethod
    def of(tensor: Any) -> Form:
        return Form(tuple(int(extent) for extent in tensor.shape), str(tensor.dtype))

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=int)) * numpy_dtype(self.dtype).itemsize


def offsets(forms: Sequence[Form]) -> list[int]:
    """Return where each tensor begins in the memory, and where the last one ends, in bytes."""
    sizes = (form.bytes + -form.bytes % _ALIGNMENT for form in forms)
    return list(itertools.accumulate(sizes, initial=0))


def tensors(memory: Bytes, forms: Sequence[Form]) -> list[Any]:
    """Return tensors in a piece of memory, which stays as long as one of them does."""
    places = offsets(forms)
    parts = [memory[place : place + form.bytes] for place, form in zip(places, forms, strict=False)]
    return [
        tvm.runtime.from_dlpack(part)._create_view(form.shape, form.dtype)
        for part, form in zip(parts, forms, strict=True)
    ]


def zeros(forms: Sequence[Form]) -> list[Any]:
    """Return tensors of zeros in huge pages."""
    return tensors(huge_pages(offsets(forms)[-1]), forms)


def copied(given: Sequence[Any]) -> list[Any]:
    """Return copies of tensors in huge pages."""
    result = zeros([Form.of(tensor) for tensor in given])
    for tensor, copy in zip(given, result, strict=True):
        tensor.copyto(copy)
    return result


def huge_pages(size: int) -> Bytes:
    """Return so many bytes of zeros that begin at a huge page, in huge pages if the kernel grants them to a process."""
    if sys.platform == "linux":
        memory = mmap.mmap(-1, size + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    else:
        memory = mmap.mmap(-1, size + HUGE_PAGE)
    array: Bytes = np.frombuffer(memory, np.uint8)
    first = -array.ctypes.data % HUGE_PAGE
    return array[first : first + size]
