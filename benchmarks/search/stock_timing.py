"""Timing with the settings of MetaSchedule's `EvaluatorConfig`: number 3, repeat 1, at least 100 ms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workers.arguments import device_of, draw, infos, to_device
from workers.build import FUNCTION, load


def run(args: list[Any], artifact: dict[str, Any]) -> Iterator[list[float]]:
    """Yield the samples of one candidate on the CPU, in seconds."""
    information = infos(args)
    device = device_of("llvm", 0)
    arguments = to_device(draw(information, [False] * len(information), "normal", 0), device)
    timer = load(artifact).time_evaluator(FUNCTION, device, number=3, repeat=1, min_repeat_ms=100)
    yield [float(sample) for sample in timer(*arguments).results]
