"""Design spaces from the user: a Python function that makes stochastic choices, or traces.

A function is run here on a schedule of the program; what leaves this machine is the trace it left behind, with its
decisions open, so the space travels as data and never as code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopwright import frontends, ir
from loopwright.frontends import Options

Space = Callable[[Any], Any] | list[Any] | Any


def to_traces(space: Space | None, model: Any, options: Options = Options()) -> list[Any] | None:
    """A space as the list of traces ``[instructions, decisions]`` that is sent; None (the built-in space) stays None.

    Args:
        space: a function ``f(sch)`` that schedules ``tvm.s_tir.Schedule`` ``sch`` in place; or a trace (TVM's, or its
            JSON); or a list of traces.
        model: what is submitted. A function needs a module with one PrimFunc, since one trace fits one program.

    Raises:
        ValueError: a function was given and the module holds not exactly one PrimFunc; or the list is empty.
        TypeError: it is none of the above.
    """
    if space is None:
        return None
    if callable(space):
        return [trace(space, frontends.to_program(model, options).module)]
    traces = [space] if _is_trace(space) else space
    if not isinstance(traces, list | tuple) or not all(_is_trace(item) for item in traces):
        raise TypeError("space takes None, a function f(sch), a trace, or a list of traces [instructions, decisions]")
    if not traces:
        raise ValueError("the list of traces is empty; give None for the built-in design space")
    return [item if isinstance(item, list) else ir.trace_to_json(item) for item in traces]


def trace(function: Callable[[Any], Any], mod: Any) -> list[Any]:
    """What ``function`` does to the only PrimFunc of ``mod``: ``[instructions, []]``, decisions left open."""
    funcs = ir.prim_funcs(mod)
    if len(funcs) != 1 or ir.has_relax(mod):
        raise ValueError(f"a space function needs a module with one PrimFunc and nothing else; this has {len(funcs)}")
    schedule = ir.require_tvm().s_tir.Schedule(ir.as_main(funcs[0][1]))
    function(schedule)
    instructions, _ = ir.trace_to_json(schedule.trace)
    return [instructions, []]


def _is_trace(value: Any) -> bool:
    if hasattr(value, "as_json"):
        return True
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(part, list) for part in value):
        return False
    return all(isinstance(step, list) and step and isinstance(step[0], str) for step in value[0])
