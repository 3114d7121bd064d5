"""Proves that a program computes each sample of a symbolic axis from that sample alone: its inputs may then be padded.

The axis of a tensor whose extent is a multiple of the symbolic extent n is its batch axis: n samples of as many
elements each (``(n * 6, 16)`` has samples of six rows). A program is batch-like if each tensor has at most one such
axis, no value depends on n itself, and each sample of a result is computed from the same sample of the operands. Then
the first n samples of its results are the same, however many samples follow.

The proof follows the structure of lowered programs: calls of PrimFuncs whose blocks are not scheduled yet, and views.
What it does not know is not batch-like.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, Expr, GlobalVar, Range, TensorLoad, Var, prim
from tvm.s_tir import SBlock, SBlockRealize

from loopwright.codegen.graph.rewriting import op_name

_MOST = 2**40
"""Samples of a batch at most, for the analyzer."""
_PURE = 1
"""Of ``tirx::CallEffectKind``: this, or less, is a function of its operands only."""


@dataclass(frozen=True, slots=True)
class BatchAxis:
    """The axis of a tensor that has the samples, and the number of elements along it that each sample has."""

    axis: int
    per_sample: int


def not_batchlike(mod: tvm.IRModule, func: relax.Function, symbol: Var) -> str | None:
    """Return why a lowered Relax function is not proven to be batch-like in a symbolic extent; None if it is."""
    proof = _Proof(mod, symbol)
    try:
        proof.function(func)
    except _Unproven as unproven:
        return str(unproven)
    return None


def batch_axis(shape: Sequence[Expr], symbol: Var) -> BatchAxis | None:
    """Return the batch axis of a tensor that a batch-like function takes or returns; None if it has none."""
    return _batch_axis(shape, symbol, tvm.sym.Analyzer(), "a tensor")


class _Unproven(Exception):
    """The part that is not proven, as a clause."""


class _Proof:
    """Raises `_Unproven` where the proof fails."""

    def __init__(self, mod: tvm.IRModule, symbol: Var) -> None:
        self._mod = mod
        self._symbol = symbol
        self._analyzer = tvm.sym.Analyzer()
        self._analyzer.bind(symbol, Range(1, _MOST))

    def function(self, func: relax.Function) -> None:
        for param in func.params:
            self._value(param.ty, str(param.name))
        self._value(func.ret_ty, "the result")
        if not isinstance(func.body, relax.SeqExpr):
            raise _Unproven("the function is no sequence of calls")
        for block in func.body.blocks:
            for binding in block.bindings:
                if not isinstance(binding, relax.VarBinding):
                    raise _Unproven(f"{binding.var.name} is a {type(binding).__name__}")
                self._binding(binding.value, str(binding.var.name))

    def _value(self, ty: Any, name: str) -> None:
        if isinstance(ty, relax.TupleType):
            for each in ty.fields:
                self._value(each, name)
        elif isinstance(ty, relax.TensorType):
            self._tensor(ty, name)
        else:
            raise _Unproven(f"{name} is no tensor")

    def _tensor(self, ty: relax.TensorType, name: str) -> BatchAxis | None:
        if ty.shape is None or not isinstance(ty.shape, relax.ShapeExpr):
            raise _Unproven(f"the shape of {name} is not known")
        return self._axis(list(ty.shape.values), name)

    def _axis(self, shape: list[Expr], name: str) -> BatchAxis | None:
        return _batch_axis(shape, self._symbol, self._analyzer, name)

    def _binding(self, value: Any, name: str) -> None:
        if isinstance(value, Call):
            operator = op_name(value)
            if operator == "call_tir" and isinstance(value.args[0], GlobalVar):
                return self._call(value)
            if operator == "reshape":
                return self._view(value, name)
            raise _Unproven(f"{name} is a call of {operator or value.op}")
        if not isinstance(value, Var | relax.Tuple | relax.TupleGetItem | tvm.ir.GenericConst):
            raise _Unproven(f"{name} is a {type(value).__name__}")
        return None

    def _view(self, call: Call, name: str) -> None:
        """Samples stay whole and in order if equally many elements are before the batch axis: then the rest is, too."""
        before, after = (list(ty.shape.values) for ty in (call.args[0].ty, call.ty))
        old, new = self._axis(before, name), self._axis(after, name)
        if old is None and new is None:
            return
        if old is None or new is None or _count(before[: old.axis]) != _count(after[: new.axis]):
            raise _Unproven(f"{name} is a view that cuts samples apart")

    def _call(self, call: Call) -> None:
        """Check a PrimFunc, whose symbolic extents are what the call gives them."""
        func = self._mod[call.args[0]]
        name = str(call.args[0].name_hint)
        if not isinstance(func, tirx.PrimFunc):
            raise _Unproven(f"{name} is no loop program")
        results = call.ty.fields if isinstance(call.ty, relax.TupleType) else [call.ty]
        arguments = [*call.args[1].fields, *call.args[2:]]
        arguments = [each for a in arguments for each in (a.values if isinstance(a, relax.ShapeExpr) else [a])]
        tensors = [*arguments, *results]
        if len(tensors) != len(func.params):
            raise _Unproven(f"a call of {name} has other parameters than {name}")
        extents: dict[Var, Expr] = {}
        for param, argument in zip(func.params, tensors, strict=True):
            if not isinstance(param.ty, tirx.buffer.BufferType):
                extents[param] = argument
                continue
            ty = argument if isinstance(argument, relax.TensorType) else argument.ty
            for extent, value in zip(param.shape, ty.shape.values, strict=True):
                if isinstance(extent, Var):
                    extents.setdefault(extent, value)
        _Blocks(name, {symbol: self._multiple(value, name) for symbol, value in extents.items()}).function(func)

    def _multiple(self, value: Expr, name: str) -> int | BatchAxis:
        """Return what a call gives an extent of a PrimFunc: a number, or a multiple of the symbolic extent."""
        axis = self._axis([value], f"a call of {name}")
        return int(value) if axis is None else axis


class _Blocks:
    """The blocks of one PrimFunc, each of which is to compute one sample from the same sample of what it reads."""

    def __init__(self, name: str, extents: Mapping[Var, int | BatchAxis]) -> None:
        self._name = name
        self._samples = tirx.Var("samples", "int64")  # the caller's variable may have another meaning in here
        self._analyzer = tvm.sym.Analyzer()
        self._analyzer.bind(self._samples, Range(1, _MOST))
        for symbol, extent in extents.items():
            number = extent if isinstance(extent, int) else self._samples * extent.per_sample
            self._analyzer.bind(symbol, tirx.const(number, str(symbol.ty)) if isinstance(number, int) else number)
        self._symbols = frozenset(extents)
        self._axes: dict[Var, BatchAxis | None] = {}
        self._loops: dict[Var, Expr] = {}

    def function(self, func: tirx.PrimFunc) -> None:
        for param in func.params:
            if isinstance(param.ty, tirx.buffer.BufferType):
                self._declare(param)
        self._statement(func.body)

    def _fail(self, what: str) -> _Unproven:
        return _Unproven(f"{self._name} {what}")

    def _declare(self, buffer: Var) -> None:
        if buffer.strides or not (buffer.elem_offset is None or _is(buffer.elem_offset, 0)):
            raise self._fail(f"has a buffer with strides or an offset, {buffer.name}")
        self._axes[buffer] = self._axis_of(list(buffer.shape), str(buffer.name))

    def _axis_of(self, shape: list[Expr], name: str) -> BatchAxis | None:
        return _batch_axis(shape, self._samples, self._analyzer, f"{name} in {self._name}")

    def _statement(self, stmt: Any) -> None:
        match stmt:
            case tirx.SeqStmt():
                for each in stmt.seq:
                    self._statement(each)
            case tirx.For() if _is(stmt.min, 0) and (stmt.step is None or _is(stmt.step, 1)):
                self._loops[stmt.loop_var] = stmt.extent
                self._statement(stmt.body)
                del self._loops[stmt.loop_var]
            case SBlockRealize() if stmt.block.iter_vars:
                self._block(stmt)
            case SBlockRealize() if not self._loops and _is(stmt.predicate, 1) and not stmt.block.match_buffers:
                for buffer in stmt.block.alloc_buffers:
                    self._declare(buffer)
                self._statement(stmt.block.body)
            case _:
                raise self._fail(f"has a {type(stmt).__name__} outside of blocks")

    def _block(self, realize: SBlockRealize) -> None:
        block = realize.block
        self._check_axes(realize)
        sample = self._sample(block)
        for part in (block.init, block.body):
            if part is not None:
                self._check_part(part, sample, str(block.name_hint))

    def _check_axes(self, realize: SBlockRealize) -> None:
        """Check that the axes of a block are the loops around it, so that the block runs once for each iteration."""
        block, left = realize.block, dict(self._loops)
        if not _is(realize.predicate, 1) or block.alloc_buffers or block.match_buffers:
            raise self._fail(f"has a condition or buffers of its own in block {block.name_hint}")
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            extent = left.pop(value, None) if isinstance(value, Var) else 1 if _is(value, 0) else None
            if extent is None or not _is(axis.dom.min, 0) or not self._equal(axis.dom.extent, extent):
                raise self._fail(f"has an axis of block {block.name_hint} that is no loop, {axis.var.name}")
            self._analyzer.bind(axis.var, axis.dom)
        if left:
            raise self._fail(f"has a loop that is no axis of block {block.name_hint}")

    def _sample(self, block: SBlock) -> Expr | None:
        """Return the index of the sample that an instance of a block computes.

        None if the number of instances does not depend on the number of samples.
        """
        axes = [(axis, self._axis_of([axis.dom.extent], str(axis.var.name))) for axis in block.iter_vars]
        symbolic = [(axis, extent) for axis, extent in axes if extent is not None]
        if not symbolic:
            return None
        [(axis, extent), *others] = symbolic
        if others or axis.iter_type != tirx.IterVar.DataPar:
            raise self._fail(f"combines samples in block {block.name_hint}")
        return tirx.floordiv(axis.var, tirx.const(extent.per_sample, str(axis.var.ty.dtype)))

    def _check_part(self, part: Any, sample: Expr | None, block: str) -> None:
        calls: list[Call] = []
        stores: list[tirx.BufferStore] = []
        loads: list[TensorLoad] = []
        nested: list[SBlock] = []
        for kind, found in ((Call, calls), (tirx.BufferStore, stores), (TensorLoad, loads), (SBlock, nested)):
            tvm_ffi.structural_walk(part, (kind, found.append), order="pre")
        if nested or (self._symbols | self._loops.keys()).intersection(_names(part)):
            raise self._fail(f"computes with the number of samples in block {block}")
        for call in calls:
            if not _is_arithmetic(call):
                raise self._fail(f"calls {getattr(call.op, 'name', call.op)} in block {block}")
        for store in stores:
            self._check_access(store.buffer, store.indices, sample, block, is_store=True)
        for load in loads:
            self._check_access(load.source, load.indices, sample, block, is_store=False)

    def _check_access(
        self, buffer: Var, indices: Sequence[Expr], sample: Expr | None, block: str, *, is_store: bool
    ) -> None:
        if buffer not in self._axes:
            raise self._fail(f"has a view of a buffer in block {block}, {buffer.name}")
        axis = self._axes[buffer]
        if axis is None:
            if is_store and sample is not None:
                raise self._fail(f"combines samples in block {block}")
            return
        if sample is None:
            raise self._fail(f"picks samples in block {block}")
        index = indices[axis.axis]
        if not self._equal(tirx.floordiv(index, tirx.const(axis.per_sample, str(index.ty.dtype))), sample):
            raise self._fail(f"combines samples in block {block}, by {buffer.name}[{', '.join(map(str, indices))}]")

    def _equal(self, one: Any, other: Any) -> bool:
        return bool(self._analyzer.can_prove_equal(one, other))


def _batch_axis(shape: Sequence[Expr], symbol: Var, analyzer: tvm.sym.Analyzer, name: str) -> BatchAxis | None:
    """Raises `_Unproven` of ``name`` if several extents depend on the symbol, or one is no multiple of it."""
    found = []
    for axis, extent in enumerate(map(analyzer.simplify, shape)):
        if isinstance(extent, prim.IntImm):
            continue
        linear = tvm.sym.detect_linear_equation(extent, [symbol])
        factor, rest = map(analyzer.simplify, linear) if linear else (None, None)
        if not isinstance(factor, prim.IntImm) or int(factor) < 1 or not _is(rest, 0):
            raise _Unproven(f"{name} has the extent {extent}, which is no multiple of {symbol.name}")
        found.append(BatchAxis(axis, int(factor)))
    if len(found) > 1:
        raise _Unproven(f"{name} has {symbol.name} in several axes")
    return found[0] if found else None


def _count(extents: Sequence[Expr]) -> int:
    return math.prod(int(extent) for extent in extents)


def _names(part: Any) -> list[Var]:
    """Return the variables in a statement or an expression but for buffers, whose types name their extents."""
    names: list[Var] = []

    def visit(var: Var) -> Any:
        if isinstance(var.ty, tirx.buffer.BufferType):
            return tvm_ffi.WalkResult.SKIP
        names.append(var)
        return None

    tvm_ffi.structural_walk(part, (Var, visit), order="pre")
    return names


def _is_arithmetic(call: Call) -> bool:
    """Return whether a call computes a number from numbers, and always the same one."""
    if not isinstance(call.op, tvm.ir.Op):
        return False
    effect = call.op.get_attr("TCallEffectKind")
    handles = [each for each in (call, *call.args) if "handle" in str(getattr(each.ty, "dtype", each.ty))]
    pointers = [each for each in call.args if isinstance(each.ty, tirx.buffer.BufferType)]
    return effect is not None and int(effect) <= _PURE and not handles and not pointers


def _is(expr: object, number: int) -> bool:
    return isinstance(expr, prim.IntImm) and int(expr) == number
