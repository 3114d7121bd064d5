"""Which accesses of a function are not proven to lie within their buffers.

TVM does not check indices, and neither does the processor. Here TVM's arithmetic proves each index from the domains of
loops and of blocks' axes, and from the conditions around it. What is not proven need not be wrong.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, GenericConst, Range, TensorLoad, Var, prim
from tvm.s_tir import SBlockRealize
from tvm.tirx import Stmt
from tvm.tirx.transform import StmtSimplify

from loopwright.codegen.program.annotations import may_be_had
from loopwright.codegen.program.claimed_types import claims_another_type, is_a_result
from loopwright.codegen.program.index_ranges import MayOverflow, Ranges, conjuncts, limits

_MOST = 2**62
"""Numbers of 64 bits keep away from the analyzer's own infinity."""
_LEAVES = frozenset({Var, prim.IntImm, prim.FloatImm, tvm.ir.StringImm, GenericConst})
_FIELDS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys(
        [
            *(prim.Add, prim.Sub, prim.Mul, prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod, prim.Min, prim.Max),
            *(prim.EQ, prim.NE, prim.LT, prim.LE, prim.GT, prim.GE, prim.And, prim.Or),
            *(prim.LShift, prim.RShift, prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor),
        ],
        ("a", "b"),
    ),
    prim.Not: ("a",),
    prim.BitwiseNot: ("a",),
    prim.Cast: ("value",),
    prim.Broadcast: ("value",),
    prim.Ramp: ("base", "stride"),
    # Both values are computed, whatever the condition is.
    prim.Select: ("condition", "true_value", "false_value"),
}
"""The operands of expressions."""
_MOST_BYTES = 2**47
"""Of a buffer: as much as processors address."""


def unproven(func: tirx.PrimFunc) -> list[str]:
    """Return what is not proven to lie within its buffer, each once, as the user wrote it. Static shapes only."""
    if findings := _findings(func):
        return findings
    # The simplifier drops limits within a `Select` that asks for the same, and both of its values are computed.
    return _findings(StmtSimplify()(tvm.IRModule({"main": func}))["main"])


def _findings(func: tirx.PrimFunc) -> list[str]:
    return Walk().findings_of(func)


def depends_on_data(index: Expr | Range) -> bool:
    """Return whether an index, or a range of them, contains an element of a buffer."""
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(index, (TensorLoad, loads.append), order="pre")
    return bool(loads)


def _has_any_value(index: Expr) -> bool:
    """Return whether an index contains a number that no domain limits: an element, a result, or what was a floating
    one."""
    found: list[prim.Cast | Call] = []
    tvm_ffi.structural_walk(index, ((prim.Cast, Call), found.append), order="pre")
    return depends_on_data(index) or any(
        limits(each.value) is None if isinstance(each, prim.Cast) else is_a_result(each) for each in found
    )


def _operands(expr: Expr) -> Sequence[Expr]:
    match expr:
        case Call():
            return list(expr.args)
        case prim.Shuffle():
            return [*expr.vectors, *expr.indices]
    return [getattr(expr, field) for field in _FIELDS.get(type(expr), ())]


class Walk:
    """Through a function, statement by statement, with what is known at each."""

    def __init__(self) -> None:
        self._findings: list[str] = []
        self._ranges = Ranges()
        self._meanings: list[tuple[Var, Expr | Range]] = []
        self._conditions: list[Expr] = []
        self._buffers: set[Var] = set()
        self._scopes = contextlib.ExitStack()
        """Of names that are bound until the statement ends that they are in."""
        self._scope: set[Var] = set()
        """Names that are bound where the walk is."""

    def findings_of(self, func: tirx.PrimFunc) -> list[str]:
        """Return what is not proven of a function, each once."""
        for param in func.params:
            if isinstance(param.ty, tirx.buffer.BufferType):
                self._declare(param)
        self._body(func.body)
        return list(dict.fromkeys(self._findings))

    def _declare(self, buffer: Var) -> None:
        """Take note of a buffer that accesses may name."""
        if not all(isinstance(extent, prim.IntImm) for extent in buffer.shape):
            self._complain(f"{buffer.name} has an extent that is not a number")
        elif not (buffer.elem_offset is None or _is(buffer.elem_offset, 0)):
            self._complain(f"{buffer.name} has an offset")
        elif "x" in str(buffer.dtype):
            self._complain(f"{buffer.name} has vectors for elements")
        elif not can_be_counted(buffer, elements := self._elements(buffer)):
            self._complain(f"{buffer.name} has {elements} elements, which its indices cannot count")
        self._buffers.add(buffer)

    def _elements(self, buffer: Var) -> int:
        """Return for how many elements a buffer has memory; 0 if its strides do not say so."""
        return 0 if buffer.strides else math.prod(map(int, buffer.shape))

    def _complain(self, finding: str) -> None:
        self._findings.append(finding)

    # Statements.

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case tirx.SeqStmt():
                for each in stmt.seq:
                    self.statement(each)
            case tirx.For():
                self._loop(stmt)
            case SBlockRealize():
                self._block(stmt)
            case tirx.BufferStore():
                self._expressions([*stmt.indices, stmt.value])
                self._access(stmt.buffer, stmt.indices)
            case tirx.IfThenElse():
                self._expressions([stmt.condition])
                for holds, case in ((True, stmt.then_case), (False, stmt.else_case)):
                    with self._given(stmt.condition, holds) as runs:
                        if runs and case is not None:
                            self._body(case)
            case tirx.While():
                self._expressions([stmt.condition])
                self._body(stmt.body)
            case tirx.AttrStmt():
                self._attribute(stmt)
            case tirx.Bind():
                self._expressions([stmt.value])
                self._scopes.enter_context(self._bound(stmt.var, stmt.value))
            case tirx.AllocBuffer():
                self._declare(stmt.buffer)
            case tirx.Evaluate():
                self._expressions([stmt.value])
            case tirx.AssertStmt():
                self._expressions([stmt.condition])
            case tirx.Break() | tirx.Continue():
                pass
            case _:
                self._complain(f"a {type(stmt).__name__}, whose accesses are not followed")

    def _body(self, stmt: Stmt) -> None:
        """Walk what has a scope of its own, of names and of buffers."""
        buffers = set(self._buffers)
        with contextlib.ExitStack() as scopes:
            around, self._scopes = self._scopes, scopes
            self.statement(stmt)
            self._scopes, self._buffers = around, buffers

    @contextlib.contextmanager
    def _named(self, names: Mapping[Var, Expr | Range]) -> Iterator[None]:
        """Bind names in a scope. None of them may have another meaning there."""
        known = len(self._meanings)
        with self._ranges.scope():
            for name, meaning in names.items():
                if name in self._scope:
                    self._complain(f"{name.name} is bound twice")
                self._scope.add(name)
                if isinstance(meaning, Range):
                    self._ranges.name(name, meaning.min, meaning.extent)
                else:
                    self._ranges.name(name, meaning)
                self._meanings.append((name, self._stable(name, meaning)))
            yield
        del self._meanings[known:]
        self._scope -= names.keys()

    def _stable(self, name: Var, meaning: Expr | Range) -> Expr | Range:
        """Return what stays true of a name whatever is stored: a range in numbers, if its own depends on data."""
        if limits(name) is None or not depends_on_data(meaning):
            return meaning
        least, most = self._ranges.interval(self._ranges.value(name))
        return Range(max(least, -_MOST), min(most, _MOST) + 1)

    def _loop(self, loop: tirx.For) -> None:
        self._expressions([loop.min, loop.extent])
        if len({str(each.ty) for each in (loop.loop_var, loop.min, loop.extent)}) > 1:
            self._complain(f"the loop over {loop.loop_var.name} counts with another type than its ends have")
        if loop.step is not None and not _is(loop.step, 1):
            self._complain(f"the loop over {loop.loop_var.name} has steps")
        self._annotations(f"the loop over {loop.loop_var.name}", loop.annotations)
        with (
            self._given(loop.extent > 0) as runs,
            self._named({loop.loop_var: Range.from_min_extent(loop.min, loop.extent)}),
        ):
            if runs:
                self._body(loop.body)

    def _annotations(self, place: str, annotations: Mapping[str, object]) -> None:
        for name, value in annotations.items():
            if not may_be_had(name, value):
                self._complain(f"{place} has the annotation {name} with the value {value}")

    def _attribute(self, stmt: tirx.AttrStmt) -> None:
        self._expressions([stmt.value])
        is_thread = str(stmt.attr_key) in ("thread_extent", "virtual_thread")
        with self._named({stmt.node.var: Range(0, stmt.value)} if is_thread else {}):
            self._body(stmt.body)

    def _block(self, realize: SBlockRealize) -> None:
        block = realize.block
        self._annotations(f"block {block.name_hint}", block.annotations)
        self._expressions([*realize.iter_values, realize.predicate])
        with self._given(realize.predicate):
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
                last = axis.dom.min + axis.dom.extent - 1
                # TVM computes the value anew wherever the axis is named.
                if depends_on_data(value) or not self._within(value, axis.dom.min, last):
                    self._complain(f"axis {axis.var.name} of block {block.name_hint}, which is {value}")
            for buffer in block.alloc_buffers:
                self._declare(buffer)
            for match in block.match_buffers:
                self._complain(f"{match.buffer.name} is a view")
            with self._named({axis.var: axis.dom for axis in block.iter_vars}):
                if block.init is not None:
                    self._body(block.init)
                self._body(block.body)

    # Expressions.

    def _expressions(self, exprs: Sequence[Expr]) -> None:
        """Walk expressions. Without recursion, but for scopes: sums of a thousand terms are as deep."""
        stack = list(exprs)
        while stack:
            expr = stack.pop()
            if claims_another_type(expr):
                self._complain(f"{expr}, which is no {expr.ty}")
            if type(expr) in _LEAVES:
                continue
            match expr:
                case TensorLoad():
                    self._access(expr.source, expr.indices)
                    stack.extend(expr.indices)
                case prim.Let():
                    self._expressions([expr.value])
                    with self._bound(expr.var, expr.value):
                        self._expressions([expr.body])
                case Call() if str(expr.op.name) == "tirx.assume":
                    self._complain(f"{expr.args[0]} is assumed, which nobody checks")
                case Call() if str(expr.op.name) == "prim.if_then_else":
                    condition, then, otherwise = expr.args
                    stack.append(condition)
                    for holds, part in ((True, then), (False, otherwise)):
                        with self._given(condition, holds) as runs:
                            if runs:
                                self._expressions([part])
                case _ if type(expr) in _FIELDS or isinstance(expr, Call | prim.Shuffle):
                    if isinstance(expr, Call):
                        self._call(expr)
                    stack.extend(reversed(_operands(expr)))
                case _:
                    self._complain(f"a {type(expr).__name__}, whose accesses are not followed")

    def _call(self, call: Call) -> None:
        """Prove what a call accesses besides the elements in its arguments: nothing in submitted functions."""

    @contextlib.contextmanager
    def _given(self, condition: Expr, holds: bool = True) -> Iterator[bool]:
        """Assume that a condition holds, or does not, except the parts that depend on elements of buffers, which later
        stores may change. Returns False if that cannot be."""
        known = len(self._conditions)
        with self._ranges.scope():
            is_possible = not self._ranges.never(condition, holds)
            for part, is_true in conjuncts(condition, holds):
                if not isinstance(part, prim.IntImm) and not depends_on_data(part):
                    self._conditions.append(part if is_true else prim.Not(part))
            yield is_possible
        del self._conditions[known:]

    def _bound(self, var: Var, value: Expr) -> contextlib.AbstractContextManager[None]:
        """Return a scope in which a variable has a value that stores do not change."""
        if str(var.ty) != str(value.ty):
            self._complain(f"{var.name} is {value}, and of another type")
        return contextlib.nullcontext() if limits(var) is None else self._named({var: value})

    # Accesses.

    def _access(self, buffer: Var, indices: Sequence[Expr]) -> None:
        if buffer not in self._buffers:
            self._complain(f"{_written(buffer, indices)}: {buffer.name} is a view, or of another scope")
            return
        for index, extent in zip(indices, buffer.shape, strict=True):
            if not self._within(index, 0, int(extent) - 1):
                if not self._lies_elsewhere(buffer, indices):
                    access = f"{_written(buffer, indices)}, where {index}"
                    self._complain(f"{access} may be outside of 0 to {int(extent) - 1}")
                return

    def _lies_elsewhere(self, buffer: Var, indices: Sequence[Expr]) -> bool:
        """Return whether an access beyond one axis meets another row of the buffer: never in submitted functions."""
        return False

    def _within(self, index: Expr, least: Expr | int, most: Expr | int) -> bool:
        """Return whether an index, or each lane of a vector of them, is proven to lie in a closed range."""
        if isinstance(index, prim.Ramp):
            if not isinstance(index.lanes, int | prim.IntImm):
                return False
            last = index.base + index.stride * (int(index.lanes) - 1)
            return self._within(index.base, least, most) and self._within(last, least, most)
        with contextlib.suppress(MayOverflow):
            if self._ranges.is_within(index, least, most):
                return True
        return not _has_any_value(index) and self._proves(index, least, most)

    def _proves(self, index: Expr, least: Expr | int, most: Expr | int) -> bool:
        """Return whether TVM's own arithmetic proves what domains and conditions are too entangled to show."""
        analyzer = tvm.sym.Analyzer()
        for name, meaning in self._meanings:
            analyzer.bind(name, meaning, True)
        with contextlib.ExitStack() as scopes:
            for condition in self._conditions:
                scopes.enter_context(analyzer.constraint_scope(analyzer.rewrite_simplify(condition)))
            return _fits(analyzer, index) and analyzer.can_prove(index >= least) and analyzer.can_prove(index <= most)


def _written(buffer: Var, indices: Sequence[Expr]) -> str:
    return f"{buffer.name}[{', '.join(map(str, indices))}]"


def _fits(analyzer: tvm.sym.Analyzer, index: Expr) -> bool:
    """Return whether nothing that an index computes overflows, as far as it can be known from domains alone."""
    stack = [index]
    while stack:
        expr = stack.pop()
        operands = _operands(expr)
        ends = limits(expr)
        if not operands or ends is None:
            continue
        bound = analyzer.const_int_bound(expr)
        if not max(ends[0], -_MOST) <= bound.min_value <= bound.max_value <= min(ends[1], _MOST):
            return False
        stack.extend(operands)
    return True


def can_be_counted(buffer: Var, elements: int) -> bool:
    """Return whether places within a buffer, and its bytes, are numbers of the dtype of its extents."""
    narrow = any(str(extent.ty.dtype) == "int32" for extent in buffer.shape)
    bits = int(found["bits"]) if (found := re.search(r"(?P<bits>\d+)", str(buffer.dtype))) else 8
    return 0 < elements < (2**31 if narrow else 2**62) and elements * max(bits, 8) // 8 <= _MOST_BYTES


def _is(expr: object, number: int) -> bool:
    return isinstance(expr, prim.IntImm) and int(expr) == number
