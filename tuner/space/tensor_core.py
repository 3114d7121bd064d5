"""Products of bfloat16 on tensor cores, beside TVM's rules for cuda, which have them for float16 and int8 only."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

from loopwright.codegen import bf16_tensor_core
from loopwright.codegen.intrinsics import only_intrinsics_of
from loopwright.codegen.target import compute_capability

_FIRST = 80
"""Compute capability, times ten, of the first tensor cores that multiply bfloat16."""
_ALIGNMENT = (32, 8)
"""A row's length is 8 elements more than a multiple of 32, as in TVM's rule for float16."""


def bf16_generator(mod: tvm.IRModule, target: Target) -> ms.space_generator.PostOrderApply | None:
    """Return TVM's rules and tensor cores for bfloat16; None if the function has none, or the GPU no such cores."""
    if compute_capability(target) < _FIRST or not _has_bf16(mod):
        return None
    with only_intrinsics_of(target):
        first, *others = ms.schedule_rule.ScheduleRule.create("cuda-tensorcore")
        # As TVM's rule for float16 but for the intrinsics.
        rule = ms.schedule_rule.MultiLevelTilingTensorCore(
            intrin_groups=bf16_tensor_core.groups(),
            structure="SSSRRSRS",
            tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
            max_innermost_factor=4,
            vector_load_lens=[1, 2, 3, 4, 8, 16],
            reuse_read=ms.schedule_rule.ReuseType(req="must", levels=[4], scope="shared.dyn"),
            reuse_write=ms.schedule_rule.ReuseType(req="must", levels=[2], scope="shared.dyn"),
        )
        return ms.space_generator.PostOrderApply(
            sch_rules=[first, rule, *others], postprocs="from-target", mutator_probs="from-target"
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


def _has_bf16(mod: tvm.IRModule) -> bool:
    return any(str(buffer.dtype) == bf16_tensor_core.ELEMENT for buffer in mod["main"].params)
