"""A user's own design space: traces that came as data.

A trace is replayed by TVM's schedule primitives, which check what they do; but some instructions can carry
code into the program (import pragmas, foreign intrinsics), so only listed instructions and annotations pass.
"""

from __future__ import annotations

import json
from typing import Any

import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Trace
from tvm.target import Target

from loopwright.codegen.errors import last_line
from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rule import KNOB, RULE
from tuner.errors import InvalidSpace
from tuner.guard.module import check_callouts
from tuner.space.design_space import DesignSpace
from tuner.workload import tune_context

INSTRUCTIONS = frozenset(
    {
        "GetSBlock",
        "GetLoops",
        "GetChildBlocks",
        "GetProducers",
        "GetConsumers",
        "GetOutputBlocks",
        "SampleCategorical",
        "SamplePerfectTile",
        "SamplePartitionedTile",
        "SampleComputeLocation",
        "Split",
        "LoopPartition",
        "Merge",
        "Fuse",
        "Reorder",
        "ReorderBlockIterVar",
        "AddUnitLoop",
        "Parallel",
        "Vectorize",
        "Bind",
        "Unroll",
        "CacheRead",
        "CacheWrite",
        "CacheInplace",
        "CacheIndex",
        "ReIndex",
        "ReindexCacheRead",
        "ReindexCacheWrite",
        "ReadAt",
        "WriteAt",
        "ComputeAt",
        "ReverseComputeAt",
        "ComputeInline",
        "ReverseComputeInline",
        "FuseReductionEpilogue",
        "DecomposeReduction",
        "RFactor",
        "StorageAlign",
        "SetScope",
        "Blockize",
        "Annotate",
        "Unannotate",
        "TransformLayout",
        "TransformBlockLayout",
        "DecomposePadding",
        "PadEinsum",
        "RollingBuffer",
        "EnterPostproc",
    }
)

ANNOTATIONS = frozenset(
    {
        "meta_schedule.tiling_structure",
        "meta_schedule.parallel",
        "meta_schedule.vectorize",
        "meta_schedule.unroll_explicit",
        "meta_schedule.unroll_implicit",
        "meta_schedule.random_compute_producer",
        "meta_schedule.cooperative_fetch",
        "meta_schedule.thread_extent_low_inclusive",
        "meta_schedule.thread_extent_high_inclusive",
        "meta_schedule.layout_rewrite_preproc",
        "meta_schedule.cache_type",
        "meta_schedule.inline_rule",
        "meta_schedule.auto_tensorize",
        "meta_schedule.auto_tensorize_init",
        "meta_schedule.vectorize_factor",
        "meta_schedule.cross_thread_reduction",
        "pragma_auto_unroll_max_step",
        "pragma_loop_partition_hint",
        "pragma_unroll_explicit",
        "software_pipeline_stage",
        "software_pipeline_order",
        "software_pipeline_async_stages",
        "double_buffer_scope",
        "warp_execution",
    }
)


def user_space(mod: tvm.IRModule, target: Target, traces: list[Any], seed: int) -> DesignSpace:
    """Return the space of a user's traces (TVM's ``[instructions, decisions]``), kept to those that apply to this
    workload.

    Raises:
        InvalidSpace: an instruction is not allowed, or no trace applies.
    """
    open_traces: list[Trace] = []
    reason = "no trace was given"
    for position, trace in enumerate(traces):
        check_trace(trace, f"trace {position}")
        schedule = new_schedule(mod, seed)
        try:
            Trace.apply_json_to_schedule([trace[0], trace[1]], schedule)
        except Exception as error:
            reason = f"trace {position}: {last_line(error)}"
            continue
        if findings := check_callouts(schedule.mod["main"]):
            raise InvalidSpace(f"trace {position} brings foreign code into the program: {'; '.join(findings)}")
        open_traces.append(schedule.trace)
    if not open_traces:
        raise InvalidSpace(f"no trace of the space applies to the function; the last reason was: {reason}")
    # The traces above already are the space; the generator only carries the target's rules for finishing.
    generator = ms.space_generator.ScheduleFn(
        lambda schedule: None,
        sch_rules=[],
        postprocs=ms.Postproc.create(target.kind.name),
        mutator_probs={},
    )
    return DesignSpace(mod, tune_context(mod, target, generator, seed), open_traces)


def check_trace(trace: Any, name: str, also: frozenset[str] = frozenset()) -> None:
    """Refuse a trace that uses an instruction neither listed above nor in ``also``, or a foreign annotation.

    ``name`` is what the messages call it. Raises InvalidSpace.
    """
    if not (isinstance(trace, list) and len(trace) == 2 and all(isinstance(part, list) for part in trace)):
        raise InvalidSpace(f"{name} is not TVM's [instructions, decisions]; send sch.trace.as_json()")
    for instruction in trace[0]:
        if not _is_instruction(instruction):
            raise InvalidSpace(f"{name} holds a malformed instruction: {json.dumps(instruction)[:120]}")
        kind, _, attributes, _ = instruction
        if kind not in INSTRUCTIONS | also:
            raise InvalidSpace(f"{name} uses {kind}, which a submitted space may not; remove that step")
        if kind in ("Annotate", "Unannotate") and not (
            attributes
            and isinstance(attributes[0], str)
            and (attributes[0] in ANNOTATIONS or attributes[0].startswith((RULE, KNOB)))
        ):
            raise InvalidSpace(f"{name} sets the annotation {attributes[:1]}, which a space may not")


def _is_instruction(value: Any) -> bool:
    """Return whether it is ``[kind, inputs, attributes, outputs]``."""
    return (
        isinstance(value, list)
        and len(value) == 4
        and isinstance(value[0], str)
        and all(isinstance(part, list) for part in value[1:])
    )
