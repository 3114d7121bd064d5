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

from tuner import ir
from tuner.errors import InvalidSpace
from tuner.guard.module import check_callouts
from tuner.space.design_space import DesignSpace

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
        "meta_schedule.vectorize_factor",
        "meta_schedule.cross_thread_reduction",
        "pragma_auto_unroll_max_step",
        "pragma_unroll_explicit",
        "software_pipeline_stage",
        "software_pipeline_order",
        "software_pipeline_async_stages",
        "double_buffer_scope",
        "buffer_dim_align",
        "warp_execution",
    }
)


def user_space(mod: tvm.IRModule, target: Target, traces: list[Any], seed: int) -> DesignSpace:
    """The space of a user's traces (TVM's ``[instructions, decisions]``), kept to those that apply to this workload.

    Raises:
        InvalidSpace: an instruction is not allowed, or no trace applies.
    """
    open_traces: list[Trace] = []
    reason = "no trace was given"
    for position, trace in enumerate(traces):
        _check_trace(trace, position)
        schedule = ir.new_schedule(mod, seed)
        try:
            Trace.apply_json_to_schedule([trace[0], trace[1]], schedule)
        except Exception as error:
            reason = f"trace {position}: {ir.first_line(error)}"
            continue
        if findings := check_callouts(schedule.mod["main"]):
            raise InvalidSpace(f"trace {position} brings foreign code into the program: {'; '.join(findings)}")
        open_traces.append(schedule.trace)
    if not open_traces:
        raise InvalidSpace(f"no trace of the space applies to the function; the last reason was: {reason}")
    postprocs = [ms.postproc.DisallowDynamicLoop()]
    if target.kind.name == "cuda":
        postprocs.append(ms.postproc.VerifyGPUCode())
    # The traces above already are the space; the generator only carries the rules.
    generator = ms.space_generator.ScheduleFn(
        lambda schedule: None, sch_rules=[], postprocs=postprocs, mutator_probs=ms.Mutator.create(target.kind.name)
    )
    return DesignSpace(mod, ir.tune_context(mod, target, generator, seed), open_traces)


def _check_trace(trace: Any, position: int) -> None:
    if not (isinstance(trace, list) and len(trace) == 2 and all(isinstance(part, list) for part in trace)):
        raise InvalidSpace(f"trace {position} is not TVM's [instructions, decisions]; send sch.trace.as_json()")
    for instruction in trace[0]:
        if not (isinstance(instruction, list) and len(instruction) == 4 and isinstance(instruction[0], str)):
            raise InvalidSpace(f"trace {position} holds a malformed instruction: {json.dumps(instruction)[:120]}")
        kind, _, attributes, _ = instruction
        if kind not in INSTRUCTIONS:
            raise InvalidSpace(f"trace {position} uses {kind}, which a submitted space may not; remove that step")
        if kind in ("Annotate", "Unannotate") and (not attributes or attributes[0] not in ANNOTATIONS):
            raise InvalidSpace(f"trace {position} sets the annotation {attributes[:1]}, which a space may not")
