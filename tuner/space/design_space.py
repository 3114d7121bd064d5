"""A design space: open traces for one workload, and the rules that accept and finish them."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule import _ffi_api
from tvm.s_tir.schedule import Trace

from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rules.analysis.sketches import Sketches
from loopwright.codegen.target import STATIC_SHARED_BYTES, shared_bytes
from tuner.space import gpu_limits, tensor_core
from tuner.space.unrolling import MOST_CALLS, unrolled_calls

REFUSALS = (RuntimeError, ValueError, TypeError, LookupError)
"""What TVM raises if an instruction or a postprocessor does not apply."""


class DesignSpace:
    """Open traces with the post-processors that belong to them.

    Args:
        mod: the workload's module; its function is ``main``.
        context: a TuneContext that the rules were initialised with.
        traces: open traces; a candidate comes from exactly one of them, or from a sketch.
        sketches: those of Loopwright's own rules, whose traces are finished by the rules instead of the
            post-processors, of which only those for the limits of a GPU apply; None for a user's space.
    """

    def __init__(
        self, mod: tvm.IRModule, context: ms.TuneContext, traces: Sequence[Trace], sketches: Sketches | None = None
    ) -> None:
        self.mod = mod
        self.context = context
        self._sketches = sketches
        # Without decisions, every replay draws fresh ones from the schedule's seed.
        self.traces = [Trace(trace.insts, {}) for trace in traces] + (sketches.traces if sketches else [])
        self.seeds = sketches.seeds() if sketches else []
        """Decided traces to measure first, the most promising first."""
        self.neighbours = sketches.neighbours() if sketches else []
        """Decided traces beside the first seed, to measure after the seeds. Some may not be in the space."""
        self._postprocs = list(context.space_generator.postprocs or [])
        self._limits_differ = context.target.kind.name == "cuda" and shared_bytes(context.target) > STATIC_SHARED_BYTES
        self._for_declared_memory = (
            gpu_limits.for_declared_memory(self._postprocs, mod, context.target) if self._limits_differ else []
        )

    def replay(self, trace: Trace, seed: int) -> Schedule | None:
        """Apply a trace, drawing what it leaves open from ``seed``, and finish it with the post-processors.

        Returns None where an instruction does not apply, a post-processor refuses, or TVM would unroll more calls than
        LLVM compiles in a second (`tuner.space.unrolling`): such a program is not in the space, which is no failure of
        a trial.
        """
        schedule = self.draw(trace, seed)
        if schedule is None:
            return None
        try:
            by_rule = self._sketches is not None and self._sketches.finish(schedule)
            if not by_rule:
                schedule.enter_postproc()
            declares = self._limits_differ and gpu_limits.declares_shared_memory(schedule.mod)
            postprocs = self._for_declared_memory if declares else self._postprocs
            if by_rule:
                postprocs = gpu_limits.verifying(postprocs)
            accepted = not tensor_core.has_odd_pipeline(schedule.mod) and all(
                _ffi_api.PostprocApply(postproc, schedule) for postproc in postprocs
            )
            if accepted and not by_rule and self.context.target.kind.name == "llvm":
                accepted = unrolled_calls(schedule.mod) <= MOST_CALLS
        except REFUSALS:
            return None
        return schedule if accepted else None

    def draw(self, trace: Trace, seed: int) -> Schedule | None:
        """Apply a trace like `replay`, without postprocessors. Returns None if an instruction does not apply."""
        schedule = new_schedule(self.mod, seed)
        try:
            trace.apply_to_schedule(schedule, remove_postproc=True)
        except REFUSALS:
            return None
        return schedule
