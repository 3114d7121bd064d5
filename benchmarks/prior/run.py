"""Searches functions in this process, and races their first choices with what the search finds; times instant answers.

Programs are built and timed one after another. The search is that of a job, with an empty database.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm.target import Target

from benchmarks.code import ROOT
from benchmarks.prior.functions import FAMILIES, functions
from benchmarks.runner import Raw, conditions
from loopwright.applying.instant import Candidate, random_arguments
from loopwright.codegen.host import threads
from loopwright.codegen.kinds import FailureKind, Stage
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.rules import prior
from tuner.cost_model.model import CostModel
from tuner.search.config import SearchConfig
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.space.builtin import builtin_space
from tuner.types import Failure, Measured, Outcome
from tuner.workload import make_workload

SMOKE = ("--trials", "6", "--only", "softmax", "--models", "BERT")
MODELS = ("BERT", "ResNet-18")
FEW = 8
"""Trials after which the search is looked at, too."""
BRIEF_SECONDS = 0.02
"""Of the timing of a trial."""
ROUNDS = 15
SAMPLE_SECONDS = 0.003


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=128, help="of each function")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="MODEL")


def run(options: argparse.Namespace, raw: Raw) -> None:
    threads.set_defaults()
    target = this_cpu()
    if not raw.lines():
        raw.append({"kind": "plan", "trials": options.trials, "conditions": conditions()})
    for model in options.models:
        if ("answer", model) not in raw.latest("kind", "model"):
            raw.append({"kind": "answer", "model": model, **answered(model)})
    for family in options.only:
        done = raw.latest("kind", "family", "function")
        for name, workload in functions(family, target):
            if ("function", family, name) not in done:
                figures = searched(workload, target, options.trials)
                raw.append({"kind": "function", "family": family, "function": name, **figures})


def answered(model: str) -> dict[str, float]:
    """Return the seconds of each step of an instant answer, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.prior.answer", model]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(text.splitlines()[-1])
    return found


def searched(workload: tvm.IRModule, target: Target, trials: int) -> dict[str, Any]:
    """Return the seconds of a call of the unscheduled program, of the first choice, and of the bests of the trials.

    Programs that do not exist are left out. All run in turn.
    """
    arguments = random_arguments(workload)
    space = builtin_space(workload, target, 1)
    name = make_workload(workload["main"], "main").hash
    config = SearchConfig()
    model, rng = CostModel(1, None, config.ranking), np.random.default_rng(1)
    search = EvolutionarySearch(name, space, model, rng, config=config)
    found: list[tuple[float, list[Any]]] = []
    few: tuple[float, list[Any]] | None = None
    made = 0
    while made < trials and (batch := search.propose(min(config.batch, trials - made))):
        for candidate in batch:
            made += 1
            trace = json.loads(candidate.trace_json or "null")
            outcome: Outcome
            try:
                seconds = _brief(Candidate(workload, trace, target).bound(arguments))
                outcome = Measured((seconds,), worker="")
                found.append((seconds, trace))
            except (RuntimeError, ValueError) as error:
                outcome = Failure(Stage.BUILD, FailureKind.COMPILE, str(error), "")
            search.observe(candidate, outcome)
        if made <= FEW:
            few = min(found, key=lambda pair: pair[0], default=None)
    best = min(found, key=lambda pair: pair[0], default=None)
    first = next(iter(prior.choices(workload, target)), None)
    traces = {"first": first, "few": few and few[1], "best": best and best[1]}
    calls = {"unscheduled": Candidate(workload, None, target).bound(arguments)}
    calls |= {key: Candidate(workload, trace, target).bound(arguments) for key, trace in traces.items() if trace}
    return {"seconds": _raced(calls), "made": made}


def _brief(call: Callable[[], None]) -> float:
    """Return the least seconds of a call within a short time."""
    call()
    began, samples = time.perf_counter(), [_sample(call, 1)]
    number = max(1, int(1e-3 / samples[0]))
    while time.perf_counter() - began < BRIEF_SECONDS:
        samples.append(_sample(call, number))
    return min(samples)


def _raced(calls: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Return the median seconds of each call, one sample a round, in turn."""
    numbers = {name: max(1, int(SAMPLE_SECONDS / _brief(call))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            samples[name].append(_sample(call, numbers[name]))
    return {name: statistics.median(each) for name, each in samples.items()}


def _sample(call: Callable[[], None], number: int) -> float:
    began = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - began) / number
