"""Compiles portfolios of shapes, and times them beside the untuned function with the symbolic extent."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
import tvm
from torch import nn
from tvm import relax

from benchmarks.runner import Raw, conditions
from benchmarks.services import embedded
from loopwright import Client, frontends
from loopwright.applying import apply as applying
from loopwright.applying import lookup

SMOKE = ("--trials", "8", "--only", "perceptron of 256, 128 and 10")
LARGEST = 64
EXTENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 17, 20, 24, 28, 32, 33, 40, 48, 56, 63, 64, 65, 96)
"""The last two run untuned: what they take beyond the untuned function is the price of the dispatch."""
ROUNDS = 15
SAMPLE_SECONDS = 0.003


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron of 256, 128 and 10": (
        lambda: nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)),
        (256,),
    ),
    "two convolutions of 32 x 32": (
        lambda: nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()),
        (3, 32, 32),
    ),
    "encoder layer of 16 x 64": (lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), (16, 64)),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=256, help="of each model")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS), metavar="MODEL")
    parser.add_argument("--port", type=int, default=8181, help="of the service")


def run(options: argparse.Namespace, raw: Raw) -> None:
    figures: dict[str, Any] = {"largest": LARGEST, "trials": options.trials, "conditions": conditions(2), "models": []}
    with embedded(options.port) as client:
        for name in options.only:
            make, shape = MODELS[name]
            figures["models"].append({"name": name, **compared(client, make, shape, options.trials)})
            raw.replace(figures)


def compared(client: Client, make: Callable[[], nn.Module], shape: tuple[int, ...], trials: int) -> dict[str, Any]:
    """Return the seconds of both programs at each extent, round by round, and how the portfolio serves it."""
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=4 * LARGEST)
    exported = torch.export.export(make().eval(), (torch.rand(4, *shape),), dynamic_shapes=({0: batch},))
    plan = client.plan_shapes(exported, {"batch": range(1, LARGEST + 1)})
    job = client.submit(exported, shapes=plan, max_trials=trials).wait(progress=False)
    assert job.state == "succeeded", job.error
    tuned = client.compile(exported, shapes=plan)
    assert client.last_report is not None
    target = client.look_up(exported, shapes=plan.shape(plan.buckets[0].extent)).target
    untuned = applying.build(lookup.lower(frontends.to_program(exported), target), target)
    machines = [relax.VirtualMachine(built, tvm.cpu()) for built in (untuned, tuned)]
    return {
        "buckets": [bucket.extent for bucket in plan.buckets],
        "served": [asdict(each) for each in client.last_report.served],
        "extents": {str(extent): timed(machines, (extent, *shape)) for extent in EXTENTS},
    }


def timed(machines: list[relax.VirtualMachine], shape: tuple[int, ...]) -> list[list[float]]:
    """Return seconds a call of each machine, one sample a round, in turn."""
    argument = tvm.runtime.tensor(torch.rand(shape).numpy())
    once = [machine.time_evaluator("main", tvm.cpu(), number=3, repeat=2)(argument).results[-1] for machine in machines]
    numbers = [max(1, round(SAMPLE_SECONDS / seconds)) for seconds in once]
    samples: list[list[float]] = [[] for _ in machines]
    for _ in range(ROUNDS):
        for machine, number, into in zip(machines, numbers, samples, strict=True):
            into.append(machine.time_evaluator("main", tvm.cpu(), number=number, repeat=1)(argument).mean)
    return samples
