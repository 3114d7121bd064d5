"""Portfolios of shapes for a model: what may be padded, and which extents which tuned variant serves. Needs TVM."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from loopwright.applying import apply as applying
from loopwright.applying import lookup
from loopwright.applying.agreement import agreement
from loopwright.applying.lookup import LookedUp
from loopwright.applying.report import AppliedFunction, ApplyReport, Served
from loopwright.codegen.arrays import numpy_dtype
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.functions import relax_funcs
from loopwright.codegen.graph.layout import layout_notes
from loopwright.codegen.host.quiet import POWERS, without_lines
from loopwright.codegen.program.batching import batch_axis, not_batchlike
from loopwright.codegen.program.dispatch import ShapeVariant, dispatch
from loopwright.codegen.program.lowering import lower, relax_symbols
from loopwright.frontends.program import Program
from loopwright.shapes.plan import Extents, Portfolio, plan_shapes

CALL_US = 2.0
"""What a call of a variant costs beside its functions, in microseconds: comparing extents, and calling two copies.
Measured on x86-64: 0.5 to 1.3."""
COPIED_BYTES_PER_US = 2000.0
"""How fast arguments are padded and results cut, by one core. A low figure: the cores of servers copy several times as
fast, unless others use the memory."""


def plan(program: Program, shapes: Portfolio | Extents, **options: Any) -> Portfolio:
    """Return the buckets for a model (`plan_shapes`, with its options); a portfolio as it is.

    Raises:
        ValueError: as `plan_shapes`.
        InvalidModule: the model's Relax functions have no symbolic extent of the name.
    """
    if isinstance(shapes, Portfolio):
        return shapes
    chosen = plan_shapes(shapes, **options)
    with without_lines(POWERS):
        lowered = lower(_bound(program, chosen).module, lookup.ASSUMED)
    return plan_shapes(shapes, **options, not_padded=_not_padded(lowered, chosen.name))


def bound(program: Program, portfolio: Portfolio) -> list[Program]:
    """Return the program of each bucket, with all extents bound.

    Raises:
        InvalidModule: the model's Relax functions have no symbolic extent of the portfolio's name.
    """
    _bound(program, portfolio)
    return [program.bind(shape) for shape in portfolio.shapes]


def compiled(
    program: Program,
    portfolio: Portfolio,
    models: Sequence[LookedUp],
    params: dict[str, Any] | None,
    *,
    verify: bool = True,
) -> tuple[Any, ApplyReport]:
    """Build one module that takes any extent: a tuned variant for each bucket, and the untuned functions for the rest.

    A variant is used where the certificates of its functions say that it is faster than the untuned functions. These
    are taken to need, for a smaller extent, proportionally less than the unscheduled program of the bucket.

    Args:
        program: the model.
        portfolio: its buckets.
        models: what is known of the program of each bucket (`bound`).
        params: values that are bound to ``main`` by name.
        verify: whether to compare the program with the model.

    Returns:
        A ``relax.VMExecutable``, and the report.

    Raises:
        WrongAnswer: with ``verify``, the program does not compute what the model computes on its example inputs.
    """
    whole = _bound(program, portfolio)
    target = models[0].target
    lowered = lookup.lower(whole, target, params)
    is_padded = portfolio.not_padded is None and _not_padded(lowered, portfolio.name) is None
    copied = [_copied(lowered, portfolio.name, bucket.extent) if is_padded else None for bucket in portfolio.buckets]
    variants: list[ShapeVariant] = []
    functions: list[AppliedFunction] = []
    served: list[Served] = []
    for bucket, model, bytes_copied in zip(portfolio.buckets, models, copied, strict=True):
        applied, report = applying.apply(model)
        functions += [function.of(f"{portfolio.name}={bucket.extent}") for function in report.functions]
        smallest = _smallest(model, bucket.extent, bytes_copied)
        if smallest is not None:
            smallest = max(smallest, variants[-1].extent + 1 if variants else 1)
            variants.append(ShapeVariant(bucket.extent, smallest, applied))
        served.append(Served(bucket.extent, smallest))
    built = applying.build(dispatch(lowered, portfolio.name, variants), target)
    found = agreement(program.reference, built, lowered, target) if verify and not params else None
    return built, ApplyReport(tuple(functions), portfolio.name, tuple(served), found, layout_notes(lowered))


def _bound(program: Program, portfolio: Portfolio) -> Program:
    """Return the program with the portfolio's fixed extents bound, and its many-valued extent symbolic."""
    bound = program.bind(portfolio.fixed)
    if portfolio.name not in (symbols := relax_symbols(bound.module)):
        raise InvalidModule(
            f"shapes gives several values of {portfolio.name}, which is no symbolic extent of the model's Relax "
            f"functions; they have: {', '.join(sorted(symbols)) or 'none'}. Give several shapes as a list instead"
        )
    return bound


def _not_padded(lowered: tvm.IRModule, name: str) -> str | None:
    """Return the reason why calls of a lowered model cannot be padded, or None if they can."""
    reasons = [not_batchlike(lowered, func, symbol) for func, symbol in _symbolic(lowered, name)]
    return next((reason for reason in reasons if reason is not None), None)


def _symbolic(lowered: tvm.IRModule, name: str) -> list[tuple[relax.Function, tvm.ir.Var]]:
    """Return the Relax functions with a symbolic extent, and its variable in each."""
    return [
        (func, symbol)
        for _, func in relax_funcs(lowered)
        for symbol in relax.analysis.defined_symbolic_vars(func)
        if str(symbol.name) == name
    ]


def _smallest(model: LookedUp, extent: int, copied: int | None) -> int | None:
    """Return the smallest extent that a variant serves faster than the untuned functions; None if there is none.

    Args:
        copied: bytes that are copied for a call that is padded; None if none may be.
    """
    calls = _calls(model.module)
    known = [(count, model.bests[name]) for name, count in calls.items() if name in model.bests]
    baseline_us = sum(count * best.baseline_us for count, best in known)
    best_us = sum(count * best.best_us for count, best in known)
    if best_us + CALL_US >= baseline_us:
        return None
    if copied is None or len(known) < len(calls):
        return extent
    return min(extent, math.ceil(extent * (best_us + CALL_US + copied / COPIED_BYTES_PER_US) / baseline_us))


def _calls(lowered: tvm.IRModule) -> Counter[str]:
    """Return how often the Relax functions of a module call each PrimFunc."""
    calls: Counter[str] = Counter()

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.Call):
            calls.update(str(each.name_hint) for each in node.args[:1] if isinstance(each, tvm.ir.GlobalVar))

    for _, func in relax_funcs(lowered):
        relax.analysis.post_order_visit(func, visit)
    return calls


def _copied(lowered: tvm.IRModule, name: str, extent: int) -> int:
    """Return the bytes of the arguments and results with a batch axis, at an extent."""
    total = 0
    for func, symbol in _symbolic(lowered, name):
        for ty in _tensors([*(param.ty for param in func.params), func.ret_ty]):
            shape = list(ty.shape.values)
            axis = batch_axis(shape, symbol)
            if axis is not None:
                shape[axis.axis] = extent * axis.per_sample
                total += math.prod(map(int, shape)) * numpy_dtype(str(ty.dtype)).itemsize
    return total


def _tensors(types: Sequence[Any]) -> list[relax.TensorType]:
    return [tensor for ty in types for tensor in (_tensors(ty.fields) if isinstance(ty, relax.TupleType) else [ty])]
