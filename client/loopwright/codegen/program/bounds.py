"""Which accesses of a function are not proven to lie within their buffers.

TVM does not check indices, and neither does the processor. Here TVM's arithmetic proves each index from the domains of
loops and of blocks' axes, and from the conditions around it. What is not proven need not be wrong.
"""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, GenericConst, Range, TensorLoad, Var, prim
from tvm.s_tir import SBlockRealize
from tvm.tirx import Stmt
from tvm.tirx.transform import StmtSimplify

from loopwright.codegen.program.annotations import may_be_had

_MOST = 2**62
"""Numbers of 64 bits keep away from the analyzer's own infinity."""
_LEAVES = (Var, prim.IntImm, prim.FloatImm, tvm.ir.StringImm, GenericConst)
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
_INTEGERS = re.compile(r"(?P<kind>int|uint|bool)(?P<bits>\d*)(x\d+)?")


def unproven(func: tirx.PrimFunc) -> list[str]:
    """Return what is not proven to lie within its buffer, each once, as the user wrote it. Static shapes only."""
    if findings := _findings(func):
        return findings
    # The simplifier drops limits within a `Select` that asks for the same, and both of its values are computed.
    return _findings(StmtSimplify()(tvm.IRModule({"main": func}))["main"])


def _findings(func: tirx.PrimFunc) -> list[str]:
    walk = _Walk()
    for param in func.params:
        if isinstance(param.ty, tirx.buffer.BufferType):
            walk.declare(param)
    walk.statement(func.body)
    return list(dict.fromkeys(walk.findings))


def depends_on_data(index: Expr | Range) -> bool:
    """Return whether an index, or a range of them, contains an element of a buffer."""
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(index, (TensorLoad, loads.append), order="pre")
    return bool(loads)


def _has_any_value(index: Expr) -> bool:
    """Return whether an index contains a number that no domain limits: an element, or what was a floating one."""
    casts: list[prim.Cast] = []
    tvm_ffi.structural_walk(index, (prim.Cast, casts.append), order="pre")
    return depends_on_data(index) or any(_limits(cast.value) is None for cast in casts)


def _limits(expr: Expr) -> tuple[int, int] | None:
    """Return the least and the largest number of an expression's integers; None if they are none."""
    found = _INTEGERS.fullmatch(str(expr.ty.dtype))
    if found is None:
        return None
    bits = int(found["bits"] or 1)
    if found["kind"] == "int":
        return max(-(2 ** (bits - 1)), -_MOST), min(2 ** (bits - 1) - 1, _MOST)
    return 0, min(2**bits - 1, _MOST)


def _operands(expr: Expr) -> Sequence[Expr]:
    match expr:
        case Call():
            return list(expr.args)
        case prim.Shuffle():
            return [*expr.vectors, *expr.indices]
    return [getattr(expr, field) for field in _FIELDS.get(type(expr), ())]


class _Walk:
    def __init__(self) -> None:
        self.findings: list[str] = []
        self._analyzer = tvm.sym.Analyzer()
        self._buffers: set[Var] = set()
        self._scopes = contextlib.ExitStack()
        """Of names that are bound until the function ends."""
        self._scope: set[Var] = set()
        """Names that are bound where the walk is."""

    def declare(self, buffer: Var) -> None:
        """Take note of a buffer that accesses may name."""
        if not all(isinstance(extent, prim.IntImm) for extent in buffer.shape):
            self._complain(f"{buffer.name} has an extent that is not a number")
        elif buffer.strides or not (buffer.elem_offset is None or _is(buffer.elem_offset, 0)):
            self._complain(f"{buffer.name} has strides or an offset")
        elif "x" in str(buffer.dtype):
            self._complain(f"{buffer.name} has vectors for elements")
        elif not _can_be_counted(buffer):
            self._complain(f"{buffer.name} has more elements than its indices can count")
        self._buffers.add(buffer)

    def _complain(self, finding: str) -> None:
        self.findings.append(finding)

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
                with self._given(stmt.condition):
                    self.statement(stmt.then_case)
                if stmt.else_case is not None:
                    with self._given(self._opposite(stmt.condition)):
                        self.statement(stmt.else_case)
            case tirx.While():
                self._expressions([stmt.condition])
                self.statement(stmt.body)
            case tirx.AttrStmt():
                self._attribute(stmt)
            case tirx.Bind():
                self._expressions([stmt.value])
                self._scopes.enter_context(self._bound(stmt.var, stmt.value))
            case tirx.AllocBuffer():
                self.declare(stmt.buffer)
            case tirx.Evaluate():
                self._expressions([stmt.value])
            case tirx.AssertStmt():
                self._expressions([stmt.condition])
            case tirx.Break() | tirx.Continue():
                pass
            case _:
                self._complain(f"a {type(stmt).__name__}, whose accesses are not followed")

    @contextlib.contextmanager
    def _named(self, names: Mapping[Var, Expr | Range]) -> Iterator[None]:
        """Bind names in a scope. None of them may have another meaning there, as the analyzer holds one each."""
        for name, meaning in names.items():
            if name in self._scope:
                self._complain(f"{name.name} is bound twice")
            self._scope.add(name)
            self._analyzer.bind(name, self._stable(name, meaning), True)
        yield
        self._scope -= names.keys()

    def _stable(self, name: Var, meaning: Expr | Range) -> Expr | Range:
        """Return what stays true of a name whatever is stored: a range in numbers, if its own depends on data."""
        limits = _limits(name)
        if limits is None or not depends_on_data(meaning):
            return meaning
        if isinstance(meaning, Range):
            least, most = self._interval(meaning.min)
            most = max(least, most + self._interval(meaning.extent)[1] - 1)
        else:
            least, most = self._interval(meaning)
        return Range(least, most + 1) if limits[0] <= least and most <= limits[1] else Range(limits[0], limits[1] + 1)

    def _loop(self, loop: tirx.For) -> None:
        self._expressions([loop.min, loop.extent])
        if loop.step is not None and not _is(loop.step, 1):
            self._complain(f"the loop over {loop.loop_var.name} has steps")
        self._annotations(f"the loop over {loop.loop_var.name}", loop.annotations)
        with self._named({loop.loop_var: Range.from_min_extent(loop.min, loop.extent)}):
            self.statement(loop.body)

    def _annotations(self, place: str, annotations: Mapping[str, object]) -> None:
        for name, value in annotations.items():
            if not may_be_had(name, value):
                self._complain(f"{place} has the annotation {name} with the value {value}")

    def _attribute(self, stmt: tirx.AttrStmt) -> None:
        self._expressions([stmt.value])
        is_thread = str(stmt.attr_key) in ("thread_extent", "virtual_thread")
        with self._named({stmt.node.var: Range(0, stmt.value)} if is_thread else {}):
            self.statement(stmt.body)

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
                self.declare(buffer)
            for match in block.match_buffers:
                self._complain(f"{match.buffer.name} is a view")
            with self._named({axis.var: axis.dom for axis in block.iter_vars}):
                if block.init is not None:
                    self.statement(block.init)
                self.statement(block.body)

    # Expressions.

    def _expressions(self, exprs: Sequence[Expr]) -> None:
        """Walk expressions. Without recursion, but for scopes: sums of a thousand terms are as deep."""
        stack = list(exprs)
        while stack:
            expr = stack.pop()
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
                    with self._given(condition):
                        self._expressions([then])
                    with self._given(self._opposite(condition)):
                        self._expressions([otherwise])
                case _ if isinstance(expr, Call | prim.Shuffle) or type(expr) in _FIELDS:
                    stack.extend(reversed(_operands(expr)))
                case _ if not isinstance(expr, _LEAVES):
                    self._complain(f"a {type(expr).__name__}, whose accesses are not followed")

    def _opposite(self, condition: Expr) -> Expr:
        return self._analyzer.rewrite_simplify(prim.Not(condition))

    @contextlib.contextmanager
    def _given(self, condition: Expr) -> Iterator[None]:
        """Assume a condition, except the parts that depend on elements of buffers, which later stores may change."""
        with contextlib.ExitStack() as scopes:
            for part in _conjuncts(condition):
                if not depends_on_data(part):
                    scopes.enter_context(self._analyzer.constraint_scope(part))
            yield

    def _bound(self, var: Var, value: Expr) -> contextlib.AbstractContextManager[None]:
        """Return a scope in which a variable has a value that stores do not change."""
        return contextlib.nullcontext() if _limits(var) is None else self._named({var: value})

    # Accesses.

    def _access(self, buffer: Var, indices: Sequence[Expr]) -> None:
        access = f"{buffer.name}[{', '.join(map(str, indices))}]"
        if buffer not in self._buffers:
            self._complain(f"{access}: {buffer.name} is a view, or of another scope")
            return
        for index, extent in zip(indices, buffer.shape, strict=True):
            if not self._within(index, 0, int(extent) - 1):
                self._complain(f"{access}, where {index} may be outside of 0 to {int(extent) - 1}")
                return

    def _within(self, index: Expr, least: Expr | int, most: Expr | int) -> bool:
        """Return whether an index, or each lane of a vector of them, is proven to lie in a closed range."""
        if isinstance(index, prim.Ramp):
            if not isinstance(index.lanes, int | prim.IntImm):
                return False
            last = index.base + index.stride * (int(index.lanes) - 1)
            return self._within(index.base, least, most) and self._within(last, least, most)
        if _has_any_value(index):
            first, last = self._interval(index)
            return self._bound_of(least)[1] <= first and last <= self._bound_of(most)[0]
        if not self._fits(index):
            return False
        return self._analyzer.can_prove(index >= least) and self._analyzer.can_prove(index <= most)

    def _fits(self, index: Expr) -> bool:
        """Return whether nothing that an index computes overflows, as far as it can be known from domains alone."""
        stack = [index]
        while stack:
            expr = stack.pop()
            operands = _operands(expr)
            limits = _limits(expr)
            if not operands or limits is None:
                continue
            bound = self._analyzer.const_int_bound(expr)
            if not limits[0] <= bound.min_value <= bound.max_value <= limits[1]:
                return False
            stack.extend(operands)
        return True

    def _bound_of(self, expr: Expr | int) -> tuple[int, int]:
        if isinstance(expr, int):
            return expr, expr
        bound = self._analyzer.const_int_bound(expr)
        return int(bound.min_value), int(bound.max_value)

    def _interval(self, expr: Expr) -> tuple[int, int]:
        """Return limits of an expression whose elements have any value: what may overflow may be any number, too."""
        whole = _all_of(expr)
        if not _has_any_value(expr):
            return self._bound_of(expr) if self._fits(expr) else whole
        if isinstance(expr, prim.Select) or (isinstance(expr, Call) and str(expr.op.name) == "prim.if_then_else"):
            ends = [self._interval(value) for value in _operands(expr)[1:]]
            return min(first for first, _ in ends), max(last for _, last in ends)
        step = _INTERVALS.get(type(expr))
        if step is None or any(_limits(operand) is None for operand in _operands(expr)):
            return whole
        found = step(*map(self._interval, _operands(expr)))
        return found if found is not None and whole[0] <= found[0] <= found[1] <= whole[1] else whole


Interval = tuple[int, int]
"""Least and largest number."""


def _of_ends(operation: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval]:
    """Return an operation on intervals whose ends come from ends, as those of sums and products do."""

    def of(a: Interval, b: Interval) -> Interval:
        ends = [operation(x, y) for x in a for y in b]
        return min(ends), max(ends)

    return of


def _quotient(a: Interval, b: Interval) -> Interval | None:
    return _of_ends(operator.floordiv)(a, b) if b[0] > 0 else None


def _remainder(a: Interval, b: Interval) -> Interval | None:
    return (0, b[1] - 1) if b[0] > 0 else None


_INTERVALS: dict[type, Callable[..., Interval | None]] = {
    prim.Add: _of_ends(operator.add),
    prim.Sub: _of_ends(operator.sub),
    prim.Mul: _of_ends(operator.mul),
    prim.Min: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    prim.Max: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    prim.FloorDiv: _quotient,
    prim.FloorMod: _remainder,
    prim.Cast: lambda a: a,
}
"""Limits of a result by those of its operands; of other operations it may be any number of its dtype."""


def _all_of(expr: Expr) -> Interval:
    """Return the least and the largest number of an integer's dtype."""
    found = _INTEGERS.fullmatch(str(expr.ty.dtype))
    bits = int(found["bits"] or 1) if found else 64
    return (0, 2**bits - 1) if found and found["kind"] != "int" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _can_be_counted(buffer: Var) -> bool:
    """Return whether places within a buffer, and its bytes, are numbers of the dtype of its extents."""
    elements = math.prod(int(extent) for extent in buffer.shape)
    narrow = any(str(extent.ty.dtype) == "int32" for extent in buffer.shape)
    bits = int(found["bits"]) if (found := re.search(r"(?P<bits>\d+)", str(buffer.dtype))) else 8
    return elements < (2**31 if narrow else 2**62) and elements * max(bits, 8) // 8 <= _MOST_BYTES


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, prim.And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _is(expr: object, number: int) -> bool:
    return isinstance(expr, prim.IntImm) and int(expr) == number
