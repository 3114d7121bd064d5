"""Products and convolutions of float32 on tensor cores by TF32, for functions that permit it."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

from loopwright.codegen.gpu import tf32_tensor_core
from loopwright.codegen.gpu.tf32 import permits_tf32
from loopwright.codegen.program.intrinsics import only_intrinsics_of
from tuner.space.copy_ahead import copying_ahead
from tuner.space.design_space import REFUSALS
from tuner.workload import tune_context

_TENSORIZED_BY = "meta_schedule.auto_tensorize"
_FACTOR = 32
_OFFSETS = {tf32_tensor_core.LOAD_A: 4, tf32_tensor_core.LOAD_B: 8, tf32_tensor_core.LOAD_B_COLUMNS: 4}
"""A row in shared memory is so many elements longer than a multiple of 32, which is the number of banks. Thread t of a
warp loads element (t / 4, t % 4) of what ``load_a`` and ``load_b_trans`` read, and (t % 4, t / 4) of what ``load_b``
reads: with these lengths, from 32 banks. Fragments stay aligned to 32 bytes. (PTX ISA, "Matrix Fragments for
mma.m16n8k8".)"""


def schedules(mod: tvm.IRModule, target: Target, seed: int) -> list[Schedule]:
    """Return sketches with tensor cores for the products of a function, beside those of TVM's rules for the target.

    Each is there twice, once with copies ahead (`tuner.space.copy_ahead`). None where the function does not permit
    TF32, or has no product that fits. ``seed`` is in [1, 2^31-1].
    """
    if not permits_tf32(mod["main"]):
        return []
    try:
        return [*_sketches(mod, target, seed), *copying_ahead(_sketches(mod, target, seed))]
    except REFUSALS:
        return []


def _sketches(mod: tvm.IRModule, target: Target, seed: int) -> list[Schedule]:
    schedules = tune_context(mod, target, _generator(target), seed).generate_design_space()
    return [schedule for schedule in schedules if _keep_in_registers(schedule)]


def _generator(target: Target) -> ms.space_generator.PostOrderApply:
    with only_intrinsics_of(target):
        first, *others = ms.schedule_rule.ScheduleRule.create("cuda-tensorcore")
        # As TVM's rule for float16 but for the intrinsics and the vectors, which are of 128 bits at most.
        rule = ms.schedule_rule.MultiLevelTilingTensorCore(
            intrin_groups=tf32_tensor_core.groups(),
            structure="SSSRRSRS",
            tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
            max_innermost_factor=4,
            vector_load_lens=[1, 2, 4],
            reuse_read=ms.schedule_rule.ReuseType(req="must", levels=[4], scope="shared.dyn"),
            reuse_write=ms.schedule_rule.ReuseType(req="must", levels=[2], scope="shared.dyn"),
        )
        return ms.space_generator.PostOrderApply(
            sch_rules=[first, rule, *others], postprocs="from-target", mutator_probs="from-target"
        )


def _keep_in_registers(schedule: Schedule) -> bool:
    """Put the factors' fragments where the intrinsics expect them, and pad the rows of shared memory that they read.

    Returns whether the schedule has such fragments.
    """
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(schedule.mod["main"].body, (SBlock, blocks.append), order="pre")
    loads = [block for block in blocks if str(block.annotations.get(_TENSORIZED_BY)) in _OFFSETS]
    for load in loads:
        schedule.set_scope(schedule.get_sblock(load.name_hint), 0, tf32_tensor_core.FRAGMENT)
        shared = load.reads[0].source
        [copy] = [block for block in blocks if any(region.source.same_as(shared) for region in block.writes)]
        offset = _OFFSETS[str(load.annotations[_TENSORIZED_BY])]
        schedule.storage_align(schedule.get_sblock(copy.name_hint), 0, -2, _FACTOR, offset)
    return bool(loads)
