"""How many calls of elementary functions TVM makes of those in the loops that it unrolls.

TVM limits what it unrolls by its statements. A statement with an exponential becomes some thirty operations, or a call
of the C library, and LLVM's time rises with the square of those: a softmax of rows of 512 elements whose three loops
are unrolled has 1,024 exponentials and takes 7.4 s of a processor's time, and one of 128 elements 0.5 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from loopwright.codegen.cpu.vector_math import elementary_calls

MOST_CALLS = 256
"""Elementary functions in the unrolled loops of a program. Twice as many took 1.6 s to compile, on AMD Zen 4."""
_LIMIT = "pragma_auto_unroll_max_step"


@dataclass(frozen=True, slots=True)
class _Size:
    """Statements, calls of elementary functions, and whether no loop is left, once loops are unrolled."""

    statements: int = 0
    calls: int = 0
    is_straight: bool = True

    def __add__(self, other: _Size) -> _Size:
        is_straight = self.is_straight and other.is_straight
        return _Size(self.statements + other.statements, self.calls + other.calls, is_straight)

    def times(self, count: int) -> _Size:
        return _Size(count * self.statements, count * self.calls, self.is_straight)


def unrolled_calls(mod: tvm.IRModule) -> int:
    """Return how many calls the loops have that a scheduled program lets TVM unroll by itself."""
    loops: list[tirx.For] = []
    tvm_ffi.structural_walk(mod["main"].body, (tirx.For, loops.append), order="pre")
    return sum(_size(loop, 0).calls for loop in loops if int(loop.annotations.get(_LIMIT, 0)))


def _size(stmt: Any, limit: int) -> _Size:
    """Return the size of a statement as TVM's `UnrollLoop` makes it, where loops of ``limit`` statements unroll."""
    match stmt:
        case tirx.For():
            return _loop(stmt, int(stmt.annotations.get(_LIMIT, limit)))
        case tirx.SeqStmt():
            return sum((_size(each, limit) for each in stmt.seq), start=_Size())
        case tvm.s_tir.SBlockRealize():
            first = stmt.block.init
            return (_Size() if first is None else _size(first, limit)) + _size(stmt.block.body, limit)
        case tirx.IfThenElse():
            other = stmt.else_case
            return _size(stmt.then_case, limit) + (_Size() if other is None else _size(other, limit))
        case tirx.BufferStore():
            return _Size(1, elementary_calls(stmt.value))
        case _:
            return _size(stmt.body, limit) if hasattr(stmt, "body") else _Size(1)


def _loop(loop: tirx.For, limit: int) -> _Size:
    body = _size(loop.body, limit)
    extent = int(loop.extent) if isinstance(loop.extent, tirx.IntImm) else None
    if loop.kind == tirx.ForKind.VECTORIZED or extent == 1:
        return body
    is_short = body.is_straight and extent is not None and extent * body.statements <= limit
    if extent is not None and (loop.kind == tirx.ForKind.UNROLLED or (loop.kind == tirx.ForKind.SERIAL and is_short)):
        return body.times(extent)
    return _Size(body.statements, body.calls, False)
