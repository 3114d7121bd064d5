"""Timing with the settings of MetaSchedule's `EvaluatorConfig`: number 3, repeat 1, at least 100 ms."""

from __future__ import annotations

from collections.abc import Iterator

import tvm

from tuner.types import TensorInfo
from workers.arguments import draw, to_device
from workers.build import FUNCTION, load
from workers.entry import entry
from workers.messages import Artifact


@entry
def run(args: list[TensorInfo], artifact: Artifact) -> Iterator[list[float]]:
    """Yield the samples of one candidate on the CPU, in seconds."""
    device = tvm.runtime.cpu(0)
    arguments = to_device(draw(args, [False] * len(args), "normal", 0), device)
    timer = load(artifact).time_evaluator(FUNCTION, device, number=3, repeat=1, min_repeat_ms=100)
    yield [float(sample) for sample in timer(*arguments).results]
