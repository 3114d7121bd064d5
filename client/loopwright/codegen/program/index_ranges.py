"""Which values integer expressions have, by the ranges of their names and the conditions around them.

Expressions are sums of multiples of *atoms*: names, elements of buffers, and what is no sum, such as a quotient. Code
for a processor may assume that sums and products of 32 bits do not overflow, so what may overflow has no value here.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tvm.ir import Call, Expr, TensorLoad, Var, prim

Interval = tuple[int, int]
"""Least and largest number."""
_INTEGERS = re.compile(r"(?P<kind>int|uint|bool)(?P<bits>\d*)(x\d+)?")
_NEAR = 2**30
"""What may be added to an element of any value: too little for a limit behind the sum to seem superfluous."""
_DEPTH = 3
"""Conditions that are combined to limit one index."""


class MayOverflow(Exception):
    """An operation may leave the range of its dtype, divide by zero, or shift by too many bits."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A constant, and the coefficients of atoms, none of which is 0."""

    constant: int
    terms: Mapping[Hashable, int]

    def plus(self, other: Linear, times: int = 1) -> Linear:
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + times * coefficient
        return Linear(self.constant + times * other.constant, {atom: each for atom, each in terms.items() if each})

    def scaled(self, times: int) -> Linear:
        return Linear(0, {}).plus(self, times)

    def key(self) -> Hashable:
        return self.constant, frozenset(self.terms.items())


def limits(expr: Expr) -> Interval | None:
    """Return the least and the largest number of an expression's dtype; None if it is no integer."""
    return _limits(str(getattr(expr.ty, "dtype", "")))


@functools.cache
def _limits(dtype: str) -> Interval | None:
    found = _INTEGERS.fullmatch(dtype)
    if found is None:
        return None
    bits = int(found["bits"] or 1)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if found["kind"] == "int" else (0, 2**bits - 1)


def conjuncts(condition: Expr, holds: bool = True) -> list[tuple[Expr, bool]]:
    """Return comparisons that are all true, or false, if a condition holds, or does not."""
    match condition:
        case prim.Not():
            return conjuncts(condition.a, not holds)
        case prim.And() if holds:
            return [*conjuncts(condition.a, True), *conjuncts(condition.b, True)]
        case prim.Or() if not holds:
            return [*conjuncts(condition.a, False), *conjuncts(condition.b, False)]
        case Call() if str(condition.op.name) == "prim.likely":
            return conjuncts(condition.args[0], holds)
    return [(condition, holds)]


class Ranges:
    """What is known where a walk through a function is."""

    def __init__(self) -> None:
        self._names: dict[int, Linear] = {}
        """The value of each name, by its identity."""
        self._intervals: dict[Hashable, Interval] = {}
        self._facts: list[Linear] = []
        """Each is at most 0."""
        self._quotients: dict[Hashable, tuple[Linear, int]] = {}
        """What was divided, and by what number, by the atom of the quotient."""
        self._elements = 0

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Forget, at the end, what is learned within."""
        kept = dict(self._names), dict(self._intervals), list(self._facts)
        try:
            yield
        finally:
            self._names, self._intervals, self._facts = kept

    # What is learned.

    def name(self, var: Var, value: Expr | int, extent: Expr | int | None = None) -> None:
        """Bind a name to a value, or to a range that starts there. Where data decides, to numbers."""
        key = hash(var)
        everything = limits(var)
        if everything is None:
            return
        self._names[key] = atom = Linear(0, {key: 1})
        self._intervals[key] = everything
        try:
            first = self.value(value)
            last = first if extent is None else first.plus(self.value(extent)).plus(Linear(-1, {}))
        except MayOverflow:
            return
        if extent is None and not self._is_data(first):
            self._names[key] = first
            return
        least, most = self.interval(first)[0], self.interval(last)[1]
        if everything[0] <= least and most <= everything[1]:
            self._intervals[key] = least, most
            if not (self._is_data(first) or self._is_data(last)):
                self._facts += [fact for fact in (first.plus(atom, -1), atom.plus(last, -1)) if len(fact.terms) > 1]

    def never(self, condition: Expr, holds: bool = True) -> bool:
        """Learn that a condition holds, or does not. Return whether that cannot be: what is in its scope never runs.

        What depends on elements of buffers is not believed, as a store may change it.
        """
        for part, is_true in conjuncts(condition, holds):
            try:
                facts = self._facts_of(part, is_true)
            except MayOverflow:
                continue
            for fact in facts:
                if self._is_data(fact):
                    continue
                if self.interval(fact)[0] > 0:
                    return True
                self._learn(fact)
        return False

    def _facts_of(self, part: Expr, holds: bool) -> list[Linear]:
        if isinstance(part, prim.IntImm):
            return [Linear(int(bool(int(part)) != holds), {})]
        if type(part) not in _COMPARED or limits(part.a) is None:
            return []
        difference = self.value(part.a).plus(self.value(part.b), -1)
        return [
            difference.scaled(sign).plus(Linear(more, {})) for sign, more in _COMPARED[type(part)][0 if holds else 1]
        ]

    def _learn(self, fact: Linear) -> None:
        if len(fact.terms) > 1:
            self._facts.append(fact)
        for atom, coefficient in fact.terms.items():
            others = self.interval(fact.plus(Linear(0, {atom: coefficient}), -1))[0]
            least, most = self._intervals[atom]
            limit = -others // coefficient if coefficient > 0 else -(others // coefficient)
            self._intervals[atom] = (least, min(most, limit)) if coefficient > 0 else (max(least, limit), most)

    # What follows.

    def is_within(self, index: Expr, least: Expr | int, most: Expr | int) -> bool:
        """Return whether an index lies in a closed range. Raises MayOverflow."""
        return self.lies(self.value(index), self.value(least), self.value(most))

    def lies(self, value: Linear, least: Linear, most: Linear) -> bool:
        """Return whether a value lies in a closed range."""
        return self._most(value.plus(most, -1)) <= 0 and self._most(least.plus(value, -1)) <= 0

    def interval(self, value: Linear) -> Interval:
        """Return limits of a value from those of its atoms."""
        least = most = value.constant
        for atom, coefficient in value.terms.items():
            first, last = self._intervals[atom]
            least += coefficient * (first if coefficient > 0 else last)
            most += coefficient * (last if coefficient > 0 else first)
        return least, most

    def _most(self, value: Linear, depth: int = _DEPTH) -> int:
        """Return a limit of a value from the facts, too: it is at most itself less a multiple of one of them.

        A quotient is limited by what was divided, which may stand in a fact.
        """
        most = self.interval(value)[1]
        if most <= 0 or depth == 0:
            return most
        for atom, coefficient in value.terms.items():
            if atom in self._quotients:
                divided, by = self._quotients[atom]
                others = value.plus(Linear(0, {atom: coefficient}), -1)
                remainder = Linear(max(0, -coefficient) * (by - 1), {})
                multiple = others.scaled(by).plus(divided, coefficient).plus(remainder)
                most = min(most, self._most(multiple, depth - 1) // by)
                if most <= 0:
                    return most
        for fact in self._facts:
            for atom, coefficient in fact.terms.items():
                times, rest = divmod(value.terms.get(atom, 0), coefficient)
                if times > 0 and rest == 0:
                    most = min(most, self._most(value.plus(fact, -times), depth - 1))
                    if most <= 0:
                        return most
        return most

    def _is_data(self, value: Linear) -> bool:
        return any(isinstance(atom, _Element) for atom in value.terms)

    # Values of expressions.

    def value(self, expr: Expr | int) -> Linear:
        """Return the value of an expression of integers. Raises MayOverflow."""
        if isinstance(expr, int | prim.IntImm):
            return Linear(int(expr), {})
        if isinstance(expr, Var) and (found := self._names.get(hash(expr))) is not None:
            return found
        everything = limits(expr)
        if everything is None:
            raise MayOverflow
        step = _STEPS.get(type(expr))
        if step is not None:
            return self._fitting(step(self, expr), everything)
        return self._any_of(expr, everything)

    def _any_of(self, expr: Expr, everything: Interval) -> Linear:
        """Return what may be any number of a dtype: an element, or a name that is not bound. Raises MayOverflow for the
        result of a function, whose dtype may be another than it claims."""
        if isinstance(expr, Call) and str(expr.op.name) in ("prim.if_then_else", "prim.likely"):
            return self._chosen(expr.args) if len(expr.args) == 3 else self.value(expr.args[0])
        if not isinstance(expr, Var | TensorLoad):
            raise MayOverflow
        return self._element(everything)

    def _element(self, interval: Interval) -> Linear:
        self._elements += 1
        atom = _Element(self._elements)
        self._intervals[atom] = interval
        return Linear(0, {atom: 1})

    def _operation(self, kind: type, operands: Sequence[Linear], interval: Interval) -> Linear:
        if interval[0] == interval[1]:
            return Linear(interval[0], {})
        if any(map(self._is_data, operands)):
            return self._element(interval)
        atom = kind, *(operand.key() for operand in operands)
        least, most = self._intervals.get(atom, interval)
        self._intervals[atom] = max(least, interval[0]), min(most, interval[1])
        return Linear(0, {atom: 1})

    def _fitting(self, value: Linear, everything: Interval) -> Linear:
        least, most = self.interval(value)
        if everything[0] <= least and most <= everything[1]:
            return value
        for atom, coefficient in value.terms.items():
            rest = self.interval(value.plus(Linear(0, {atom: coefficient}), -1))
            if abs(coefficient) == 1 and self._intervals[atom] == everything and max(map(abs, rest)) <= _NEAR:
                return self._element(everything)
        raise MayOverflow

    def _chosen(self, parts: Sequence[Expr]) -> Linear:
        condition, then, otherwise = parts
        self.value(condition)
        values = []
        for holds, part in ((True, then), (False, otherwise)):
            with self.scope():
                if not self.never(condition, holds):
                    values.append(self.interval(self.value(part)))
        return self._element((min(each[0] for each in values), max(each[1] for each in values)))


@dataclass(frozen=True, slots=True)
class _Element:
    """An atom that data decides: an element of a buffer, or what is made of one."""

    number: int


_COMPARED: dict[type, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {
    prim.LT: ([(1, 1)], [(-1, 0)]),
    prim.LE: ([(1, 0)], [(-1, 1)]),
    prim.GT: ([(-1, 1)], [(1, 0)]),
    prim.GE: ([(-1, 0)], [(1, 1)]),
    prim.EQ: ([(1, 0), (-1, 0)], []),
    prim.NE: ([], [(1, 0), (-1, 0)]),
}
"""What is at most 0 if a comparison of a with b holds, and if not: multiples of a - b, each with a number added."""


def _sum(of: Ranges, expr: Expr) -> Linear:
    return of.value(expr.a).plus(of.value(expr.b))


def _difference(of: Ranges, expr: Expr) -> Linear:
    return of.value(expr.a).plus(of.value(expr.b), -1)


def _product(of: Ranges, expr: Expr) -> Linear:
    a, b = of.value(expr.a), of.value(expr.b)
    if not b.terms:
        return a.scaled(b.constant)
    if not a.terms:
        return b.scaled(a.constant)
    ends = [x * y for x in of.interval(a) for y in of.interval(b)]
    return of._operation(prim.Mul, (a, b), (min(ends), max(ends)))


def _divided(of: Ranges, expr: Expr) -> tuple[Linear, Linear, Linear]:
    """Return a divisor, and the multiples of it in what is divided, apart from the rest. Raises MayOverflow."""
    a, b = of.value(expr.a), of.value(expr.b)
    if of.interval(b)[0] <= 0 or (isinstance(expr, prim.Div | prim.Mod) and of.interval(a)[0] < 0):
        raise MayOverflow
    if b.terms:
        return b, Linear(0, {}), a
    by = b.constant
    whole = Linear(a.constant // by, {atom: each // by for atom, each in a.terms.items() if each % by == 0})
    return b, whole, a.plus(whole, -by)


def _quotient(of: Ranges, expr: Expr) -> Linear:
    b, whole, rest = _divided(of, expr)
    ends = [x // y for x in of.interval(rest) for y in of.interval(b)]
    quotient = of._operation(prim.FloorDiv, (rest, b), (min(ends), max(ends)))
    if not b.terms and not of._is_data(rest):
        of._quotients |= dict.fromkeys(quotient.terms, (rest, b.constant))
    return whole.plus(quotient)


def _remainder(of: Ranges, expr: Expr) -> Linear:
    b, _, rest = _divided(of, expr)
    least, most = of.interval(rest)
    last = of.interval(b)[1] - 1
    if not b.terms and least >= 0 and most <= last:
        return rest
    return of._operation(prim.FloorMod, (rest, b), (0, min(most, last) if least >= 0 else last))


def _extreme(choose: Callable[[int, int], int]) -> Callable[[Ranges, Expr], Linear]:
    def step(of: Ranges, expr: Expr) -> Linear:
        a, b = of.value(expr.a), of.value(expr.b)
        (first, last), (start, stop) = of.interval(a), of.interval(b)
        least, most = of.interval(a.plus(b, -1))
        if most <= 0 or least >= 0:
            return a if (choose is min) == (most <= 0) else b
        return of._operation(type(expr), (a, b), (choose(first, start), choose(last, stop)))

    return step


def _cast(of: Ranges, expr: Expr) -> Linear:
    everything, source = limits(expr), limits(expr.value)
    assert everything is not None
    if source is None:
        return of._element(everything)
    value = of.value(expr.value)
    least, most = of.interval(value)
    is_any = (least, most) == source and of._is_data(value)
    return of._element(everything) if is_any and not everything[0] <= least <= most <= everything[1] else value


def _shifted_left(of: Ranges, expr: Expr) -> Linear:
    a, b = of.value(expr.a), of.value(expr.b)
    everything = limits(expr)
    assert everything is not None
    if b.terms or not 0 <= b.constant < everything[1].bit_length():
        raise MayOverflow
    return a.scaled(1 << b.constant)


def _shifted_right(of: Ranges, expr: Expr) -> Linear:
    a, b = of.value(expr.a), of.value(expr.b)
    everything = limits(expr)
    assert everything is not None
    if not 0 <= of.interval(b)[0] <= of.interval(b)[1] < everything[1].bit_length():
        raise MayOverflow
    ends = [x >> y for x in of.interval(a) for y in of.interval(b)]
    return of._operation(prim.RShift, (a, b), (min(ends), max(ends)))


def _bits(of: Ranges, expr: Expr) -> Linear:
    a, b = of.value(expr.a), of.value(expr.b)
    everything = limits(expr)
    assert everything is not None
    (first, last), (start, stop) = of.interval(a), of.interval(b)
    mosts = [most for least, most in ((first, last), (start, stop)) if least >= 0]
    if isinstance(expr, prim.BitwiseAnd):
        interval = (0, min(mosts)) if mosts else everything
    else:
        interval = (0, (1 << max(mosts).bit_length()) - 1) if len(mosts) == 2 else everything
    return of._operation(type(expr), (a, b), interval)


def _truth(of: Ranges, expr: Expr) -> Linear:
    for operand in (expr.a,) if isinstance(expr, prim.Not) else (expr.a, expr.b):
        if limits(operand) is not None:
            of.value(operand)
    return of._element((0, 1))


_STEPS: dict[type, Callable[[Ranges, Expr], Linear]] = {
    prim.Add: _sum,
    prim.Sub: _difference,
    prim.Mul: _product,
    prim.FloorDiv: _quotient,
    prim.Div: _quotient,
    prim.FloorMod: _remainder,
    prim.Mod: _remainder,
    prim.Min: _extreme(min),
    prim.Max: _extreme(max),
    prim.Cast: _cast,
    prim.LShift: _shifted_left,
    prim.RShift: _shifted_right,
    prim.BitwiseAnd: _bits,
    prim.BitwiseOr: _bits,
    prim.BitwiseXor: _bits,
    **dict.fromkeys([*_COMPARED, prim.And, prim.Or, prim.Not], _truth),
    prim.Select: lambda of, expr: of._chosen((expr.condition, expr.true_value, expr.false_value)),
}
"""Values of operations by those of their operands; others may have any value of their dtype."""
