"""Look-up of the bests of a model's functions in one request, however large the database is. Needs TVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import tvm
from tvm.target import Target

from loopwright import schemas
from loopwright.applying.report import Prediction
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.functions import has_relax, used_prim_funcs
from loopwright.codegen.gpu.tf32 import check_math
from loopwright.codegen.host.quiet import POWERS, without_lines
from loopwright.codegen.program import lowering
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.target import target_from
from loopwright.codegen.weights.parameters import attach
from loopwright.errors import UnsupportedModel, first_line
from loopwright.frontends.program import Program
from loopwright.results.best import Best

Ask = Callable[[list[str]], schemas.LookupAnswer]
"""Asks the service about workload hashes, for a target that was chosen before."""

_Known = TypeVar("_Known")

ASSUMED = target_from("llvm")
"""What a model is lowered for before the service has said what ``auto`` is."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A lowered module, and what is known of its PrimFuncs: the bests by the functions' names.

    ``predictions`` are for functions without a best (`loopwright.applying.instant`), of some of which the service
    knows a schedule that was imported. ``digests`` are those of the functions (`digests`), once they were computed.
    """

    module: tvm.IRModule
    target: Target
    bests: dict[str, Best]
    predictions: dict[str, Prediction] = field(default_factory=dict)
    imported: dict[str, schemas.ImportedSchedule] = field(default_factory=dict)
    digests: dict[str, list[str]] | None = None


def look_up(program: Program, ask: Ask, target: Target | None, params: dict[str, Any] | None = None) -> LookedUp:
    """Lower a model, and ask for the bests of its functions in one request (`look_up_all`)."""
    [found] = look_up_all([program], ask, target, params)
    return found


def look_up_all(
    programs: Sequence[Program], ask: Ask, target: Target | None, params: dict[str, Any] | None = None
) -> list[LookedUp]:
    """Lower models, and ask for the bests of all their functions in one request; of none if they have no functions.

    Args:
        target: what to lower for; None for what the service takes for ``auto``. The answer says what that is; only if
            it is of another kind than a CPU, the models are lowered again, and functions that come out differently are
            asked for in a second request.
        params: values of more of ``main``'s parameters, bound by name; only a Relax module takes any.

    Raises:
        ValueError: ``params`` for a module without Relax functions.
        InvalidTarget: a model permits TF32, and the target is no GPU that has it.
    """
    if target is not None:
        _check_math(programs, target)
    mods = [lower(program, target or ASSUMED, params) for program in programs]
    functions = [digests(mod) for mod in mods]
    wanted = _each_once(functions)
    if target is not None and not wanted:
        return [LookedUp(mod, target, {}) for mod in mods]
    answer = ask(wanted)
    hits = {hit.workload_hash: hit.best for hit in answer.hits}
    imported = {each.workload_hash: each for each in answer.imported}
    if target is None:
        target = resolved(answer)
        _check_math(programs, target)
        if target.kind.name != ASSUMED.kind.name and any(has_relax(program.module) for program in programs):
            mods = [lower(program, target, params) for program in programs]
            functions = [digests(mod) for mod in mods]
            others = [digest for digest in _each_once(functions) if digest not in wanted]
            if others:
                answer = ask(others)
                hits |= {hit.workload_hash: hit.best for hit in answer.hits}
                imported |= {each.workload_hash: each for each in answer.imported}
    return [
        LookedUp(mod, target, _bests(each, hits), imported=_first_known(each, imported), digests=each)
        for mod, each in zip(mods, functions, strict=True)
    ]


def _check_math(programs: Sequence[Program], target: Target) -> None:
    for program in programs:
        check_math(program.module, target)


def _each_once(functions: Sequence[dict[str, list[str]]]) -> list[str]:
    """Return the digests of all models, each once."""
    return list(dict.fromkeys(digest for model in functions for each in model.values() for digest in each))


def _bests(functions: dict[str, list[str]], hits: Mapping[str, schemas.Best]) -> dict[str, Best]:
    return {name: Best.of(best) for name, best in _first_known(functions, hits).items()}


def _first_known(functions: dict[str, list[str]], known: Mapping[str, _Known]) -> dict[str, _Known]:
    """Return what is known of functions by their names, of the most likely digest of each."""
    found = {name: [known[digest] for digest in each if digest in known] for name, each in functions.items()}
    return {name: each[0] for name, each in found.items() if each}


def lower(program: Program, target: Target, params: dict[str, Any] | None = None) -> tvm.IRModule:
    """Return a module as its PrimFuncs are tuned: legalised, folded and fused; without Relax it stays as it is.

    Weights are bound again afterwards, and what follows from them is computed: so the functions are those that were
    submitted without them.

    Raises:
        UnsupportedModel: TVM has no function for an operator with these dtypes or shapes.
    """
    if params and not has_relax(program.module):
        raise ValueError("params are bound to a Relax function, and this module has none")
    try:
        with without_lines(POWERS):
            return attach(lowering.lower(program.module, target), {**program.weights, **(params or {})})
    except tvm.error.InternalError as error:
        raise UnsupportedModel(
            f"TVM cannot lower a part of this model: {first_line(error)}; write that part with other operators, or "
            "with float32"
        ) from error


def digests(mod: tvm.IRModule) -> dict[str, list[str]]:
    """Return the digests of each used PrimFunc by its name, without those that can be no workload of the service."""
    found = {str(var.name_hint): digests_of(func) for var, func in used_prim_funcs(mod)}
    return {name: each for name, each in found.items() if each}


def digests_of(func: tvm.tirx.PrimFunc) -> list[str]:
    """Return the digests by which the service may know a function, the most likely first; none if it cannot know it.

    TVM marks functions for fusion (``op_pattern``), and the mark counts in a digest. A function that came out of fusion
    has no mark, unless its module is lowered once more: then the digest without the mark is the one to ask for.
    """
    try:
        if func.attrs and "op_pattern" in func.attrs:
            return [function_digest(func), function_digest(func.without_attr("op_pattern"))]
        return [function_digest(func)]
    except InvalidModule:
        return []  # no workload of the service is nested so deeply


def resolved(answer: schemas.LookupAnswer) -> Target:
    """Return what the target of a request is on the fleet."""
    return target_from(answer.target)
