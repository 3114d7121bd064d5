"""Which values the arguments of a function may have in a test, from what the function does with their elements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad, Var, prim
from tvm.s_tir import SBlock

from loopwright.codegen.extremes import keeps_nan, keeps_place
from loopwright.codegen.kinds import Values

_DIVISIONS = (prim.Div, prim.Mod, prim.FloorDiv, prim.FloorMod)
_COMPARISONS = (prim.Max, prim.Min, prim.LT, prim.LE, prim.GT, prim.GE)


def argument_values(func: tirx.PrimFunc) -> tuple[Values, ...]:
    """Return for each buffer parameter which values it may have.

    Elements may be used by way of other buffers and of variables. A divisor that the function chooses by a condition
    (`where(b == 0, 1, b)`) may be 0: the function takes care of it.
    """
    uses = _Uses(func)
    indices, divisors = uses.origins(uses.indices), uses.origins(uses.divisors, without=uses.chosen)
    numbers = Values.NUMBER if uses.order_decides else Values.ANY

    def values(param: Var) -> Values:
        if "float" in str(param.dtype):
            return Values.SMALL if param in uses.multiplied_again else numbers
        return Values.INDEX if param in indices else Values.NONZERO if param in divisors else Values.ANY

    return tuple(map(values, func.params))


class _Uses:
    """``indices`` and ``divisors`` are the buffers whose elements are used so at first hand, ``chosen`` those whose
    elements a condition chooses.

    ``order_decides``: a reduction compares floating-point numbers, and does not keep NaN. Whether it ends with NaN or
    with a number then depends on the order, which schedules change. The maxima of softmax are no such reductions.

    ``multiplied_again``: parameters with which what is computed in a step is multiplied in the next, as in a recurrent
    layer.
    """

    def __init__(self, func: tirx.PrimFunc) -> None:
        self._named: dict[Var, Any] = {bind.var: bind.value for bind in _nodes(func.body, tirx.Bind, prim.Let)}
        self._computed_from: defaultdict[Var, set[Var]] = defaultdict(set)
        self.indices: set[Var] = set()
        self.divisors: set[Var] = set()
        self.chosen: set[Var] = set()
        self.order_decides = False
        for access in _nodes(func.body, TensorLoad, tirx.BufferStore):
            for index in access.indices:
                self.indices |= self._read(index)
        for division in _nodes(func.body, *_DIVISIONS):
            if not _is_float(division.b) and not self._chooses(division.b):
                self.divisors |= self._read(division.b)
        self._params = set(func.params)
        self.multiplied_again: set[Var] = set()
        for block in _nodes(func.body, SBlock):
            if any(axis.iter_type == tirx.IterVar.Ordered for axis in block.iter_vars):
                self.multiplied_again |= self._multiplied(block)
        self._stores = _nodes(func.body, tirx.BufferStore)
        for store in self._stores:
            read = self._read(store.value)
            self._computed_from[store.buffer] |= read
            if self._chooses(store.value):
                self.chosen.add(store.buffer)
            if store.buffer in read and not self._keeps_nan(store.value) and not self._is_of_softmax(store.buffer):
                self.order_decides |= any(_is_float(found.a) for found in self._all(store.value, *_COMPARISONS))

    def _multiplied(self, step: SBlock) -> set[Var]:
        """Return the parameters that sums in a step multiply with what was computed in the function."""
        found: set[Var] = set()
        for store in _nodes(step.body, tirx.BufferStore):
            if store.buffer in self._read(store.value):
                for product in _nodes(store.value, prim.Mul):
                    one, other = self._read(product.a), self._read(product.b)
                    found |= (other if one - self._params else one if other - self._params else set()) & self._params
        return found

    def origins(self, buffers: set[Var], *, without: Collection[Var] = ()) -> set[Var]:
        """Return the buffers from which the elements of some are computed, and these themselves.

        What the elements of the buffers ``without`` are computed from does not count.
        """
        found, new = set(buffers), set(buffers)
        while new:
            new = set().union(*(self._computed_from[buffer] for buffer in new if buffer not in without)) - found
            found |= new
        return found

    def _keeps_nan(self, value: Any) -> bool:
        """Return whether a reduction keeps NaN, or finds the place of one, whatever its order is."""
        value = self._named.get(value, value) if isinstance(value, Var) else value
        return keeps_nan(value) or any(
            keeps_place(value, other) or keeps_place(other, value) for other in self._named.values()
        )

    def _is_of_softmax(self, maximum: Var) -> bool:
        """Return whether a maximum is subtracted from elements before their exponentials, whose sum each result reads.

        In a row with NaN, the sum is NaN whatever the maximum is.
        """

        def subtracts(expression: Any) -> bool:
            called = [call for call in self._all(expression, Call) if str(getattr(call.op, "name", "")) == "tirx.exp"]
            inner = [call.args[0] for call in called if isinstance(call.args[0], prim.Sub)]
            return any(isinstance(each.b, TensorLoad) and each.b.source == maximum for each in inner)

        users = [store for store in self._stores if maximum in self._read(store.value) and store.buffer != maximum]
        powers = {
            store.buffer for store in users if subtracts(store.value) and store.buffer not in self._read(store.value)
        }
        sums = {
            store.buffer
            for store in self._stores
            if isinstance(store.value, prim.Add)
            and store.buffer in self._read(store.value)
            and (self._read(store.value) & powers or subtracts(store.value))
        }
        users += [store for store in self._stores if self._read(store.value) & (powers | sums)]
        results = [store for store in users if store.buffer not in powers | sums]
        decisive = [self._decisive(store.value, sums) for store in users]
        return (
            bool(results)
            and self._params.isdisjoint(powers | sums)
            and all(self._read(store.value) & sums for store in results)
            and not any(self._all(value, *_COMPARISONS) or self._chooses(value) for value in decisive)
        )

    def _decisive(self, value: Any, sums: set[Var]) -> Any:
        """Return the part of a value that makes it NaN: of the quotient of a sum, which attention is, the sum."""
        inner = value.value if isinstance(value, tirx.Cast) else value
        return inner.a if isinstance(inner, prim.Div) and self._read(inner.a) & sums else value

    def _read(self, expression: Any) -> set[Var]:
        return {load.source for load in self._all(expression, TensorLoad)}

    def _chooses(self, expression: Any) -> bool:
        calls = (str(getattr(call.op, "name", "")) for call in self._all(expression, Call))
        return bool(self._all(expression, prim.Select)) or "prim.if_then_else" in calls

    def _all(self, expression: Any, *kinds: type) -> list[Any]:
        """Return the nodes of an expression, and of the values of its variables."""
        named = [self._named[var] for var in _nodes(expression, Var) if var in self._named]
        return _nodes(expression, *kinds) + [node for value in named for node in self._all(value, *kinds)]


def _is_float(expression: Any) -> bool:
    return "float" in str(expression.ty.dtype)


def _nodes(part: Any, *kinds: type) -> list[Any]:
    found: list[Any] = []
    for kind in kinds:
        tvm_ffi.structural_walk(part, (kind, found.append), order="pre")
    return found
