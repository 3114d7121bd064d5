"""Timing with the settings of MetaSchedule's `EvaluatorConfig`: number 3, repeat 1, at least 100 ms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tvm

from tuner.types import TensorInfo
from workers.arguments import draw, to_device
from workers.build import FUNCTION, load
from workers.messages import Artifact


def run(args: list[Any], artifact: dict[str, Any]) -> Iterator[list[float]]:
    """Yield the samples of one candidate on the CPU, in seconds."""
    information = [TensorInfo.from_json(info) for info in args]
    device = tvm.runtime.cpu(0)
    arguments = to_device(draw(information, [False] * len(information), "normal", 0), device)
    timer = load(Artifact.from_json(artifact)).time_evaluator(FUNCTION, device, number=3, repeat=1, min_repeat_ms=100)
    yield [float(sample) for sample in timer(*arguments).results]
