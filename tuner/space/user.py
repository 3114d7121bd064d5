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
from loopwright.codegen.program.annotations import may_be_scheduled
from loopwright.codegen.program.schedule import new_schedule
from tuner.errors import InvalidSpace
from tuner.guard.module import check_callouts, foreign_kinds
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


_INFER_A_FACTOR = frozenset({"Split", "LoopPartition"})
"""Instructions of which one factor may be None."""
_COMPUTE_INLINE = -2
"""TVM's least place of a block: inlined. At -1 it is at the root, else in the loop of that number."""


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
    """Refuse a trace that uses an instruction neither listed above nor in ``also``, a foreign annotation or object, or
    a decision of another form than its instruction's, which TVM takes without a look.

    ``name`` is what the messages call it. Raises InvalidSpace.
    """
    if not (isinstance(trace, list) and len(trace) == 2 and all(isinstance(part, list) for part in trace)):
        raise InvalidSpace(f"{name} is not TVM's [instructions, decisions]; send sch.trace.as_json()")
    drawn: dict[str, Any] = {}
    for instruction in trace[0]:
        if not _is_instruction(instruction):
            raise InvalidSpace(f"{name} holds a malformed instruction: {_short(instruction)}")
        kind, inputs, attributes, outputs = instruction
        if None in inputs and kind not in _INFER_A_FACTOR:
            raise InvalidSpace(f"{name} has {_short(instruction)} with nothing in the place of a block, loop or value")
        if kind not in INSTRUCTIONS | also:
            raise InvalidSpace(f"{name} uses {kind}, which a submitted space may not; remove that step")
        if kind == "Annotate" and not (attributes and _may_annotate(attributes[0], inputs[1:], drawn)):
            raise InvalidSpace(
                f"{name} sets the annotation {_short(attributes[:1])} to {_short(inputs[1:])}, which a space may not"
            )
        if kind == "SampleCategorical" and attributes and outputs:
            drawn[str(outputs[0])] = attributes[0]
    for decision in trace[1]:
        if not _is_decision(decision, trace[0]):
            raise InvalidSpace(f"{name} has the decision {_short(decision)}, which fits none of its instructions")
    if complaint := _foreign_objects(trace):
        raise InvalidSpace(f"{name} {complaint}")


def _is_instruction(value: Any) -> bool:
    """Return whether it is ``[kind, inputs, attributes, outputs]``."""
    return (
        isinstance(value, list)
        and len(value) == 4
        and isinstance(value[0], str)
        and all(isinstance(part, list) for part in value[1:])
    )


def _is_decision(value: Any, instructions: list[Any]) -> bool:
    """Return whether it is ``[number, decision]`` of an instruction that samples, in the form of that instruction."""
    if not (isinstance(value, list) and len(value) == 2 and type(value[0]) is int):
        return False
    number, decision = value
    if not 0 <= number < len(instructions):
        return False
    kind, _, attributes, _ = instructions[number]
    match kind:
        case "SamplePerfectTile" | "SamplePartitionedTile":
            are_factors = isinstance(decision, list) and all(type(each) is int and each > 0 for each in decision)
            return are_factors and attributes[:1] == [len(decision)]
        case "SampleCategorical":
            candidates = attributes[0] if attributes else None
            return isinstance(candidates, list) and type(decision) is int and 0 <= decision < len(candidates)
        case "SampleComputeLocation":
            return type(decision) is int and decision >= _COMPUTE_INLINE
        case _:
            return False


def _may_annotate(name: Any, inputs: list[Any], drawn: dict[str, Any]) -> bool:
    """Return whether a trace may set an annotation to a value, or to each of those that the value is drawn from."""
    if len(inputs) != 1:
        return False
    value = inputs[0]
    if isinstance(value, str):  # a text in quotes, or what an instruction before has drawn
        is_text = len(value) > 1 and value[0] == value[-1] == '"'
        values = [value[1:-1]] if is_text else drawn.get(value)
    else:
        values = [value]
    return isinstance(values, list) and bool(values) and all(may_be_scheduled(name, each) for each in values)


def _foreign_objects(trace: list[Any]) -> str:
    """Return what a trace's texts make of TVM's objects, but should not; empty if nothing."""
    stack: list[Any] = [trace]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            return "contains a mapping, which no instruction takes"
        elif isinstance(value, str) and value.startswith("{") and (kinds := foreign_kinds(value)):
            return f"contains {kinds}, which an instruction may not bring"
    return ""


def _short(value: Any) -> str:
    return json.dumps(value)[:120]
