"""Design spaces from the user: a Python function that makes stochastic choices, or traces.

A function is run here on a schedule of the program; what leaves this machine is the trace it left behind, with its
decisions open, so the space travels as data and never as code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from loopwright import frontends
from loopwright.extras import require_tvm

Space = Callable[[Any], Any] | list[Any] | Any


def to_traces(space: Space | None, model: Any) -> list[Any] | None:
    """Return a space as the list of traces ``[instructions, decisions]`` that is sent; None for the built-in space.

    Args:
        space: a function ``f(sch)`` that schedules ``tvm.s_tir.Schedule`` ``sch`` in place; or a trace (TVM's, or its
            JSON); or a list of traces.
        model: a `Model`, or a model without options. A function needs a module with one PrimFunc, since one trace
            fits one program.

    Raises:
        ValueError: the space is a function and the module has not exactly one PrimFunc; or the list is empty.
        TypeError: the space is of another kind.
    """
    if space is None:
        return None
    if callable(space):
        return [trace(space, frontends.to_program(model).module)]
    traces = [space] if _is_trace(space) else space
    if not isinstance(traces, list | tuple) or not all(_is_trace(item) for item in traces):
        raise TypeError("space takes None, a function f(sch), a trace, or a list of traces [instructions, decisions]")
    if not traces:
        raise ValueError("the list of traces is empty; give None for the built-in design space")
    return [_of_main(item if isinstance(item, list) else _as_list(item)) for item in traces]


def trace(function: Callable[[Any], Any], mod: Any) -> list[Any]:
    """Return the trace of ``function`` on the only PrimFunc of ``mod``: ``[instructions, []]``, with open decisions."""
    tvm = require_tvm()
    from loopwright.codegen.functions import has_relax, prim_funcs
    from loopwright.codegen.program.digest import normal_form

    funcs = prim_funcs(mod)
    if len(funcs) != 1 or has_relax(mod):
        raise ValueError(f"a space function needs a module with one PrimFunc and nothing else; this has {len(funcs)}")
    [(var, func)] = funcs
    name = str(var.name_hint)
    # The function is scheduled under its own name, which ``f`` may use, and is called main wherever it is tuned.
    schedule = _schedule_class()(tvm.IRModule({name: normal_form(func)["main"]}))
    schedule.work_on(name)
    function(schedule)
    instructions, _ = _of_main(_as_list(schedule.trace))
    return [instructions, []]


def _as_list(trace: Any) -> list[Any]:
    """Return TVM's trace as plain JSON values, ``[instructions, decisions]``."""
    require_tvm()
    from loopwright.codegen.serialization import trace_to_list

    return trace_to_list(trace)


def _of_main(trace: list[Any]) -> list[Any]:
    """Return a trace with the function that it schedules renamed to ``main``."""
    instructions, decisions = trace
    named = [
        [kind, inputs, [attributes[0], "main"], outputs] if kind == "GetSBlock" else [kind, inputs, attributes, outputs]
        for kind, inputs, attributes, outputs in instructions
    ]
    return [named, decisions]


def _schedule_class() -> Any:
    """Return TVM's Schedule class with ``get_block``, which is what earlier versions call ``get_sblock``."""

    class Schedule(require_tvm().s_tir.Schedule):  # type: ignore[misc]
        def get_block(self, name: str, func_name: str | None = None) -> Any:
            warnings.warn("get_block is called get_sblock today", DeprecationWarning, stacklevel=2)
            return self.get_sblock(name, func_name)

    return Schedule


def _is_trace(value: Any) -> bool:
    if hasattr(value, "as_json"):
        return True
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(part, list) for part in value):
        return False
    return all(isinstance(step, list) and len(step) == 4 and isinstance(step[0], str) for step in value[0])
