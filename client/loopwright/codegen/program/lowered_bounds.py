"""Which accesses of a lowered program are not proven to lie within the memory that is allocated for their buffers.

A schedule, and the passes behind it, change what a function accesses and how much memory it has. So what is built is
proven again, where blocks and views are gone, regions are compact, and what is left is to make each index flat.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import tvm
from tvm import tirx
from tvm.ir import Call, Expr, StringImm, Var, prim
from tvm.ir.instrument import pass_instrument
from tvm.ir.transform import PassInfo

from loopwright.codegen.math_mode import TF32_FUNCTIONS
from loopwright.codegen.program import bounds
from loopwright.codegen.program.index_ranges import Linear, MayOverflow

PROVEN = "loopwright.proven"
"""The attribute of a scheduled function whose bounds were proven before, and must be proven when it is built."""
_BEFORE_FLATTENING = "s_tir.LowerOpaqueBlock"
_MOST_PLACES = 2**31 - 1
"""Of what an index is on its way to a place, which TVM computes with 32 bits."""
_MATRICES = frozenset({"tvm_load_matrix_sync", "tvm_store_matrix_sync"})
"""Calls with a fragment, three sizes, the fragment's number, a pointer, a stride and a layout."""
_FRAGMENTS = frozenset(
    {"tvm_fill_fragment", "tvm_mma_sync", "ptx_mma", "mma_fill", "mma_store", "ptx_ldmatrix", "tvm_thread_allreduce"}
)
"""Calls on whole matrices in registers; only intrinsics of TVM and of Loopwright make them."""


def proving() -> tvm.transform.PassContext:
    """Return the current ``PassContext`` with a proof of each scheduled function that is lowered in it.

    The proof raises ValueError if a function may leave its buffers. Functions without the attribute `PROVEN` are left
    alone.
    """
    around = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=around.opt_level,
        required_pass=around.required_pass,
        disabled_pass=around.disabled_pass,
        instruments=[*(around.instruments or ()), _Proof()],
        config=around.config,
    )


@pass_instrument
class _Proof:
    def run_after_pass(self, mod: tvm.IRModule, info: PassInfo) -> None:
        if info.name != _BEFORE_FLATTENING:
            return
        for func in mod.functions.values():
            is_proven = isinstance(func, tirx.PrimFunc) and func.attrs and func.attrs.get(PROVEN)
            if is_proven and (found := unproven(func)):
                raise ValueError(f"the scheduled program is not proven to stay inside of its buffers: {found[0]}")


def unproven(func: tirx.PrimFunc) -> list[str]:
    """Return what of a lowered function is not proven to lie within the memory of its buffer, each once."""
    return _Lowered().findings_of(func)


class _Lowered(bounds.Walk):
    def _elements(self, buffer: Var) -> int:
        """Strides may leave room between rows: the first one times its extent is what TVM allocates."""
        if not buffer.strides:
            return math.prod(map(int, buffer.shape))
        if not all(isinstance(stride, prim.IntImm) for stride in buffer.strides):
            return 0
        needed = 1
        for extent, stride in zip(reversed(buffer.shape), reversed(buffer.strides), strict=True):
            if int(stride) < needed:
                return 0
            needed = int(stride) * int(extent)
        return needed

    def _lies_elsewhere(self, buffer: Var, indices: Sequence[Expr]) -> bool:
        """TVM writes some indices into the last axis alone, and intrinsics take several rows as a vector."""
        strides = [int(stride) for stride in buffer.strides] or list(_compact_strides(buffer))
        try:
            ends = itertools.product(*map(self._ends, indices))
            return all(self._is_in(buffer, zip(end, strides, strict=True)) for end in ends)
        except MayOverflow:
            return False

    def _ends(self, index: Expr) -> list[Linear]:
        """Return the first and the last lane of an index."""
        if not isinstance(index, prim.Ramp):
            return [self._ranges.value(index)]
        first = self._ranges.value(index.base)
        return [first, first.plus(self._ranges.value(index.stride), int(index.lanes) - 1)]

    def _is_in(self, buffer: Var, parts: Iterable[tuple[Linear, int]]) -> bool:
        """Return whether a sum of multiples is the place of an element of a buffer. Raises MayOverflow."""
        place = Linear(0, {})
        for value, times in parts:
            place = place.plus(value, times)
            if max(map(abs, self._ranges.interval(place))) > _MOST_PLACES:
                raise MayOverflow
        return self._ranges.lies(place, Linear(0, {}), Linear(self._elements(buffer) - 1, {}))

    def _call(self, call: Call) -> None:
        """Prove what a call accesses through a pointer: the element there, or a matrix with rows of a stride."""
        name = str(call.op.name).removeprefix("tirx.")
        if name == "tvm_access_ptr":
            if not self._reaches(call):
                self._complain(f"{call} may be outside of its buffer")
        elif name in _MATRICES:
            _, *sizes, _, pointer, stride, _ = call.args
            longest = max(map(int, sizes))
            if not self._reaches(pointer, longest - 1, stride):
                self._complain(f"{call}, whose matrix may be outside of its buffer")
        elif name not in _FRAGMENTS and not _is_of_tf32(call) and any(map(_is_data, call.args)):
            self._complain(f"{call}, whose accesses are not followed")

    def _reaches(self, pointer: Expr, more: int = 0, stride: Expr | int = 0) -> bool:
        """Return whether a pointer's element lies in its buffer, and that of ``more`` rows and columns behind it."""
        if not isinstance(pointer, Call) or str(pointer.op.name) != "tirx.tvm_access_ptr":
            return False
        _, data, offset, _, _ = pointer.args
        if not _is_data(data) or data.args[0] not in self._buffers:
            return False
        try:
            first, row = self._ranges.value(offset), self._ranges.value(stride)
            last = [(first, 1), (row, more), (Linear(more, {}), 1)]
            return self._is_in(data.args[0], [(first, 1)]) and self._is_in(data.args[0], last)
        except MayOverflow:
            return False


def _compact_strides(buffer: Var) -> Iterator[int]:
    extents = list(map(int, buffer.shape))
    return (math.prod(extents[axis + 1 :]) for axis in range(len(extents)))


def _is_of_tf32(call: Call) -> bool:
    """Return whether a call is one of our own functions on fragments, which only our intrinsics call."""
    name = call.args[0] if str(call.op.name) == "tirx.cuda.func_call" else None
    return isinstance(name, StringImm) and str(name.value).startswith(TF32_FUNCTIONS)


def _is_data(expr: Expr) -> bool:
    return isinstance(expr, Call) and str(expr.op.name) == "tirx.buffer_data"
