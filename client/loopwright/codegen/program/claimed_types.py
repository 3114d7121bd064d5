"""Whether expressions have the types that their operands give them.

TVM's constructors see to it, but what is loaded from JSON has the types that were written there. Machine code computes
with the operands' types: an index of 32 bits that claims to have 8 would pass for a small one.
"""

from __future__ import annotations

import functools
from typing import Any

from tvm.ir import Call, Expr, TensorLoad, prim

from loopwright.codegen.program.index_ranges import limits

_OF_EQUALS = (
    *(prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max),
    *(prim.LShift, prim.RShift, prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor),
)
_OF_THREADS = {"int32", "int64"}
"""TVM's own passes compare the place of a thread, which has 32 bits, with extents of 64."""
_COMPARISONS = (prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE)
_OTHERS = (
    *(prim.And, prim.Or, prim.Not, prim.BitwiseNot, prim.Select, prim.Let, prim.Broadcast, prim.Ramp, prim.IntImm),
    *(TensorLoad, Call),
)


def claims_another_type(expr: Expr) -> bool:
    """Return whether an expression has another type than its operands give it. Its operands themselves are not looked
    at, nor are the results of calls of functions, whose types only code generation knows."""
    kind: Any = type(expr)
    if not _is_looked_at(kind):
        return False
    own = _dtype(expr)
    match expr:
        case _ if isinstance(expr, _OF_EQUALS):
            return not _dtype(expr.a) == _dtype(expr.b) == own
        case _ if isinstance(expr, _COMPARISONS):
            same = _dtype(expr.a) == _dtype(expr.b) or {_dtype(expr.a), _dtype(expr.b)} == _OF_THREADS
            return not same or _element(own) != "bool"
        case prim.And() | prim.Or():
            return not _element(_dtype(expr.a)) == _element(_dtype(expr.b)) == _element(own) == "bool"
        case prim.Not():
            return not _element(_dtype(expr.a)) == _element(own) == "bool"
        case prim.BitwiseNot():
            return _dtype(expr.a) != own
        case prim.Select():
            return not _dtype(expr.true_value) == _dtype(expr.false_value) == own
        case prim.Let():
            return _dtype(expr.var) != _dtype(expr.value) or _dtype(expr.body) != own
        case prim.Broadcast():
            return _element(_dtype(expr.value)) != _element(own)
        case prim.Ramp():
            return not _element(_dtype(expr.base)) == _element(_dtype(expr.stride)) == _element(own)
        case prim.IntImm():
            ends = limits(expr)
            return ends is None or not ends[0] <= int(expr) <= ends[1]
        case TensorLoad():
            of_index = _dtype(expr.indices[-1]).partition("x")[2] if len(expr.indices) else ""
            return _element(str(expr.source.dtype)) != _element(own) or of_index != own.partition("x")[2]
        case Call() if str(expr.op.name) == "prim.if_then_else":
            return not _dtype(expr.args[1]) == _dtype(expr.args[2]) == own
        case Call() if str(expr.op.name) == "prim.likely":
            return _dtype(expr.args[0]) != own
    return False


@functools.cache
def _is_looked_at(kind: Any) -> bool:
    """Return whether expressions of this class can claim another type: most are variables."""
    return issubclass(kind, (*_OF_EQUALS, *_COMPARISONS, *_OTHERS))


def is_a_result(expr: Expr) -> bool:
    """Return whether an expression is the result of a function, which may be of another type than it claims."""
    return isinstance(expr, Call) and str(expr.op.name) not in ("prim.if_then_else", "prim.likely")


def _dtype(expr: Expr) -> str:
    return str(getattr(expr.ty, "dtype", ""))


def _element(dtype: str) -> str:
    """Return the type of the elements of a vector."""
    return dtype.partition("x")[0]
