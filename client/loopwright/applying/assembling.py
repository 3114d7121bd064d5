"""Executables of looked-up models, whose scheduled functions are compiled once for all models. Needs TVM."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tvm

from loopwright.applying.agreement import runs_here
from loopwright.applying.apply import applied, build, report_on, schedule_of
from loopwright.applying.lookup import LookedUp, digests
from loopwright.applying.report import ApplyReport
from loopwright.codegen.functions import has_relax, used_prim_funcs
from loopwright.codegen.host.threads import usable_cores
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.built_functions import BuiltFunction, BuiltFunctions, Recipe
from loopwright.codegen.program.executable import Library
from loopwright.codegen.program.intrinsics import load_intrinsics
from loopwright.codegen.program.linked_calls import with_linked_calls


@functools.cache
def functions_in(folder: Path | None) -> BuiltFunctions:
    """Return the compiled functions of a folder, which all models of the process share."""
    return BuiltFunctions(folder)


def assembled(model: LookedUp, functions: BuiltFunctions) -> tuple[Any, ApplyReport]:
    """Return what `loopwright.applying.apply` builds of a model, and the report.

    Private functions with a best or a prediction for this machine are taken from ``functions``, or compiled for them.
    In a ``PassContext`` of the caller's, and without Relax functions, all are compiled for this model alone.

    Raises:
        UnsupportedVersion: a best needs a newer version of this package.
    """
    report = report_on(model)
    if not has_relax(model.module) or not runs_here(model.target) or not _is_default_context():
        return build(applied(model, report), model.target), report
    built = _built(model, report, functions)
    rest = applied(model, report, without=built)
    distinct = {function.symbol: function for function in built.values()}
    libraries = [Library(each.library, each.exported) for each in distinct.values()]
    return compile_module(with_linked_calls(rest, built), model.target, libraries=libraries), report


def _built(model: LookedUp, report: ApplyReport, functions: BuiltFunctions) -> dict[str, BuiltFunction]:
    """Return the compiled functions that take the place of PrimFuncs, by their names."""
    known = digests(model.module) if model.digests is None else model.digests
    found = {str(var.name_hint): func for var, func in used_prim_funcs(model.module)}
    recipes = {}
    for each in report.functions:
        func = found[each.name]
        is_private = "global_symbol" not in (func.attrs or {})
        chosen = schedule_of(each)
        if chosen is not None and is_private and known.get(each.name):
            trace, exact_math = chosen
            recipes[each.name] = Recipe.of(func, known[each.name][0], trace, exact_math=exact_math)
    load_intrinsics(model.target)
    symbols = {name: recipe.symbol(model.target) for name, recipe in recipes.items()}
    first = {symbol: name for name, symbol in reversed(symbols.items())}

    def built(name: str) -> BuiltFunction:
        return functions.built(found[name], recipes[name], model.target)

    with ThreadPoolExecutor(usable_cores()) as pool:
        by_symbol = dict(zip(first, pool.map(built, first.values()), strict=True))
    return {name: by_symbol[symbol] for name, symbol in symbols.items()}


def _is_default_context() -> bool:
    context, default = tvm.transform.PassContext.current(), tvm.transform.PassContext()
    fields = ("opt_level", "required_pass", "disabled_pass", "instruments", "config")
    return all(_plain(getattr(context, name)) == _plain(getattr(default, name)) for name in fields)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else list(value or ())
