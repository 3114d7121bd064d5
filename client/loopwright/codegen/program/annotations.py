"""Annotations of blocks and loops that functions and traces may have, with the values that each may take.

TVM believes an annotation: some say how much memory a buffer takes, or which code a loop becomes. Those are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import tvm_ffi
from tvm.ir import prim

from loopwright.codegen.program.flags import RUNS_IF
from loopwright.codegen.program.prefetching import PREFETCHES
from loopwright.codegen.rule import KNOB, RULE

Check = Callable[[Any], bool]
"""Whether a value, in the types of JSON, may be an annotation's."""


def _number(least: int, most: int) -> Check:
    return lambda value: isinstance(value, int) and least <= value <= most


def _numbers(least: int, most: int) -> Check:
    """Up to as many numbers as a loop of a pipeline has statements."""
    return lambda value: isinstance(value, list) and len(value) <= 64 and all(map(_number(least, most), value))


def _text(pattern: str) -> Check:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


_FLAG = _number(0, 1)
_STEPS = _number(0, 1 << 16)
_STAGES = _numbers(0, 64)
_INTRINSIC = _text(r"[\w.]{0,100}")
OF_SCHEDULES: Mapping[str, Check] = {
    "meta_schedule.tiling_structure": _text("[SR]{1,32}"),
    "meta_schedule.parallel": _number(0, 1 << 20),
    "meta_schedule.vectorize": _number(0, 1 << 10),
    "meta_schedule.unroll_explicit": _STEPS,
    "meta_schedule.unroll_implicit": _STEPS,
    "meta_schedule.random_compute_producer": _FLAG,
    "meta_schedule.cooperative_fetch": _number(0, 1 << 10),
    "meta_schedule.thread_extent_low_inclusive": _number(0, 1 << 10),
    "meta_schedule.thread_extent_high_inclusive": _number(0, 1 << 10),
    "meta_schedule.layout_rewrite_preproc": _FLAG,
    "meta_schedule.cache_type": _number(0, 16),
    "meta_schedule.inline_rule": _text("disable"),
    "meta_schedule.auto_tensorize": _INTRINSIC,
    "meta_schedule.auto_tensorize_init": _INTRINSIC,
    "meta_schedule.vectorize_factor": _number(0, 1 << 10),
    "meta_schedule.cross_thread_reduction": _FLAG,
    "pragma_auto_unroll_max_step": _STEPS,
    "pragma_loop_partition_hint": _FLAG,
    "pragma_unroll_explicit": _FLAG,
    "software_pipeline_stage": _STAGES,
    "software_pipeline_order": _STAGES,
    "software_pipeline_async_stages": _STAGES,
    "tirx.manifest_shared_memory_local_stage": _FLAG,
    "permuted_layout": _text(r"\w{0,16}"),
    "double_buffer_scope": _number(0, 64),
    "warp_execution": _FLAG,
    RUNS_IF: _number(0, 1 << 10),
    PREFETCHES: _number(1, 1),
}
"""Of traces, and of what they made."""
_OF_OPERATORS = re.compile(r"schedule_rule|layout_free_placeholders|workload|axis|auto_scheduler_\w+")
"""Of TVM's operators, which tell its search something and its passes nothing."""


def may_be_scheduled(name: object, value: Any) -> bool:
    """Return whether a trace may give a block or a loop an annotation: a value as JSON has it."""
    if not isinstance(name, str):
        return False
    check = _number(0, 1 << 30) if name.startswith((RULE, KNOB)) else OF_SCHEDULES.get(name)
    return check is not None and check(value)


def may_be_had(name: str, value: Any) -> bool:
    """Return whether a block or a loop of a function may have an annotation: a value as TVM has it."""
    return _OF_OPERATORS.fullmatch(name) is not None or may_be_scheduled(name, _plain(value))


def _plain(value: Any) -> Any:
    match value:
        case prim.IntImm():
            return int(value)
        case str():
            return str(value)
        case tvm_ffi.Array():
            return [_plain(each) for each in value]
    return value
