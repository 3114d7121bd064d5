"""Products on tensor cores, beside TVM's rules for cuda: those of bfloat16, and all of them with software pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tvm
import tvm_ffi
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target
from tvm.tirx import For

from loopwright.codegen.gpu import bf16_tensor_core
from loopwright.codegen.gpu.async_copy import FIRST_ASYNC
from loopwright.codegen.program.intrinsics import only_intrinsics_of
from loopwright.codegen.target import compute_capability
from tuner.space.copy_ahead import copying_ahead
from tuner.workload import tune_context

_FIRST = 80
"""Compute capability, times ten, of the first tensor cores that multiply bfloat16."""
_ALIGNMENT = (32, 8)
"""A row's length is 8 elements more than a multiple of 32, as in TVM's rule for float16."""
_STAGES = "software_pipeline_stage"
"""The annotation of a pipelined loop."""
_TENSORISE = "meta_schedule.auto_tensorize"
"""The annotation of a block that a tensor intrinsic will compute. TVM's rules without have pipelines of their own."""


def bf16_generator(mod: tvm.IRModule, target: Target) -> ms.space_generator.PostOrderApply | None:
    """Return TVM's rules and tensor cores for bfloat16; None if the function has none, or the GPU no such cores."""
    if compute_capability(target) < _FIRST or not _has_bf16(mod):
        return None
    with only_intrinsics_of(target):
        first, *others = ms.schedule_rule.ScheduleRule.create("cuda-tensorcore")
        return _generator([first, _rule(bf16_tensor_core.groups(), pipelined=False), *others])


def pipelined(mod: tvm.IRModule, target: Target, seed: int) -> list[Schedule]:
    """Return sketches of TVM's rules for tensor cores in which factors are loaded while others are multiplied.

    In TVM's pipelines, of the sums over shared memory, and of those over fragments within, each is one of two stages.
    From compute capability 8.0 on there are those of `tuner.space.copy_ahead`, too. There are none if a function is no
    product that tensor cores can compute.
    """
    schedules = _tensorised(mod, target, seed, pipelined=True)
    if schedules and compute_capability(target) >= FIRST_ASYNC:
        schedules += copying_ahead(_tensorised(mod, target, seed, pipelined=False))
    return schedules


def has_odd_pipeline(mod: tvm.IRModule) -> bool:
    """Return whether a pipeline of an odd number of iterations lies in another one.

    A pipeline has two copies of its fragments and uses them in turn. After an odd number of iterations, the copy that
    the last one reads is the copy that the next run of the pipeline loads first, and the outer pipeline runs the two at
    once. `InjectSoftwarePipeline` of TVM 0.27 would make further copies then, and fails to.
    """
    return any(
        int(inner.extent) % 2 == 1
        for outer in _pipelines(mod)
        for inner in _pipelined_loops(outer.body)
        if isinstance(inner.extent, tvm.tirx.IntImm)
    )


def pad_bf16(schedule: Schedule) -> None:
    """Pad the rows of bfloat16 in dynamic shared memory, so that the rows of a fragment lie in different banks.

    TVM's rule pads rows of float16 and int8, and warns that it leaves others as they are.
    """
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(schedule.mod["main"].body, (SBlock, blocks.append), order="pre")
    for block in blocks:
        buffers = [region.source for region in block.writes]
        if any(buffer.scope() == "shared.dyn" and str(buffer.dtype) == bf16_tensor_core.ELEMENT for buffer in buffers):
            schedule.storage_align(schedule.get_sblock(block.name_hint), 0, -2, *_ALIGNMENT)


def _rule(groups: Sequence[Mapping[str, str]], *, pipelined: bool) -> ms.schedule_rule.ScheduleRule:
    """Return TVM's rule for float16 with other intrinsics, or with pipelines."""
    return ms.schedule_rule.MultiLevelTilingTensorCore(
        intrin_groups=list(groups),
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 3, 4, 8, 16],
        reuse_read=ms.schedule_rule.ReuseType(req="must", levels=[4], scope="shared.dyn"),
        reuse_write=ms.schedule_rule.ReuseType(req="must", levels=[2], scope="shared.dyn"),
        use_software_pipeline=pipelined,
    )


def _generator(rules: Sequence[ms.schedule_rule.ScheduleRule]) -> ms.space_generator.PostOrderApply:
    return ms.space_generator.PostOrderApply(
        sch_rules=list(rules), postprocs="from-target", mutator_probs="from-target"
    )


def _groups(element: str, sums: str) -> list[Mapping[str, str]]:
    """Return the names of TVM's intrinsics of a product, for a second factor in rows and for one in columns."""
    size = "16x16x16"
    return [
        {
            "init": f"wmma_fill_{size}_{sums}",
            "load_a": f"wmma_load_{size}_{element}_a_shared_dyn",
            "load_b": f"wmma_load_{size}_{element}_b{suffix}_shared_dyn",
            "compute": f"wmma_sync_{size}_{element}{element}{sums}{suffix}",
            "store": f"wmma_store_{size}_{sums}_shared_dyn",
        }
        for suffix in ("", "_trans")
    ]


def _tensorised(mod: tvm.IRModule, target: Target, seed: int, *, pipelined: bool) -> list[Schedule]:
    """Return the sketches with tensor cores, for all elements that have intrinsics."""
    groups = [*_groups("f16", "f32"), *_groups("f16", "f16"), *_groups("s8", "s32")]
    with only_intrinsics_of(target):
        if compute_capability(target) >= _FIRST:
            groups += bf16_tensor_core.groups()
        first, *others = ms.schedule_rule.ScheduleRule.create("cuda-tensorcore")
        generator = _generator([first, _rule(groups, pipelined=pipelined), *others])
        schedules = tune_context(mod, target, generator, seed).generate_design_space()
    return [schedule for schedule in schedules if _is_tensorised(schedule)]


def _is_tensorised(schedule: Schedule) -> bool:
    return any(_TENSORISE in map(str, inst.attrs) for inst in schedule.trace.insts)


def _pipelines(mod: tvm.IRModule) -> list[For]:
    return _pipelined_loops(mod["main"].body)


def _pipelined_loops(stmt: tvm.tirx.Stmt) -> list[For]:
    loops: list[For] = []
    tvm_ffi.structural_walk(stmt, (For, loops.append), order="pre")
    return [loop for loop in loops if _STAGES in loop.annotations]


def _has_bf16(mod: tvm.IRModule) -> bool:
    return any(str(buffer.dtype) == bf16_tensor_core.ELEMENT for buffer in mod["main"].params)
