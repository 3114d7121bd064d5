"""Traces and features as a search would make them, of other functions than those of the dictionary of traces."""

from __future__ import annotations

from collections.abc import Iterator

import tvm

from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from
from tests.support import convolution_programs, rule_programs
from tuner.cost_model.features import extract, to_bytes
from tuner.space.builtin import builtin_space

_TARGET = {"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 16}
_PER_SKETCH = 6


def candidates() -> Iterator[tuple[str, bytes]]:
    """Yield the trace of each candidate, as JSON, and its features as they are stored."""
    target = target_from(_TARGET)
    for mod in _functions():
        space = builtin_space(mod, target, 7)
        for trace in space.traces:
            schedules = [space.replay(trace, 1000 + number) for number in range(_PER_SKETCH)]
            accepted = [schedule for schedule in schedules if schedule is not None]
            for schedule, features in zip(accepted, extract(space.context, accepted), strict=True):
                yield trace_to_json(schedule.trace), to_bytes(features)


def _functions() -> list[tvm.IRModule]:
    return [
        rule_programs.product(96, 320, 200),
        rule_programs.linear(24, 1024, 1024),
        rule_programs.batched(16, 96, 32, 96),
        rule_programs.softmax(12, 96, 96),
        rule_programs.layer_norm(64, 1024),
        rule_programs.log_softmax(32, 1000),
        rule_programs.silu(4, 96, 320),
        convolution_programs.conv_nhwc(14, 96, 48, 5),
        convolution_programs.conv_nchw(56, 24, 48, 3, 2),
        convolution_programs.depthwise_nchw(56, 48, 5, 2),
    ]
