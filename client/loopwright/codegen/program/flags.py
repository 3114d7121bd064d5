"""Loops of schedules whose iterations run if a flag is set, which is an argument of the function.

A schedule has no primitive for conditions, so that it annotates a loop, and the condition is put in behind it. The
unscheduled function says by itself that what is computed without a flag has no influence, and certificates show it.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx

RUNS_IF = "loopwright.runs_if"
"""The annotation of a loop: the position among the parameters of the flags, one for each iteration."""


def with_conditions(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a scheduled function in which the annotated loops run the iterations whose flags are set.

    Raises:
        ValueError: an annotation names no row of as many flags as the loop has iterations.
    """

    def conditional(loop: tirx.For) -> Any:
        if RUNS_IF not in loop.annotations:
            return loop
        place = int(loop.annotations[RUNS_IF])
        flags: Any = func.params[min(place, len(func.params) - 1)]
        shape = [int(extent) for extent in getattr(flags, "shape", ())]
        if shape != [int(loop.extent)] or int(loop.min) or str(flags.dtype) != "bool":
            raise ValueError(f"the loop over {loop.loop_var.name} runs if argument {place} says so, which has no flags")
        body = tirx.IfThenElse(tirx.BufferLoad(flags, [loop.loop_var]), loop.body, None)
        others = {name: value for name, value in loop.annotations.items() if name != RUNS_IF}
        return tirx.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, others, loop.step, loop.span
        )

    body = tvm_ffi.structural_map(func.body, (tirx.For, conditional), order="post")
    return func if body.same_as(func.body) else func.with_body(body)
