"""Searches functions in this process, and races their first choices with what the search finds; times instant answers.

A batch of programs is built on all cores, and then one program after another is timed. The search is that of a job,
with an empty database. What a search found is the winner of a race of its fastest programs, as in a job: of one
program, a brief timing may be off by a tenth. The first function of each family is searched twice, with other seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tvm
from tvm.target import Target

from benchmarks.code import ROOT
from benchmarks.prior.functions import FAMILIES, functions
from benchmarks.runner import Raw, conditions
from benchmarks.services import embedded
from examples.resnet18 import ResNet18
from loopwright.applying.instant import Candidate, random_arguments
from loopwright.codegen.host import threads
from loopwright.codegen.kinds import FailureKind, Stage
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.program.intrinsics import load_intrinsics
from loopwright.codegen.rules import prior
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.target import target_from
from scripts.make_starter_pack import share
from tuner.cost_model.model import CostModel
from tuner.search.config import SearchConfig
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.space.builtin import builtin_space
from tuner.types import Failure, Measured, Outcome
from tuner.workload import make_workload

SMOKE = ("--trials", "12", "--only", "softmax", "--models", "BERT")
MODELS = ("BERT", "ResNet-18")
FEW = 8
"""Trials after which the search is looked at, too."""
CONTENDERS = 8
"""Programs that are raced at the end of a search, after `SearchConfig.small_contenders`."""
_PORT = 8096
"""Of the empty service in which a pack is installed."""
SEEDS = (1, 2)
"""Of the two searches of a family's first function; other functions are searched with the first one."""
BUILD_SECONDS = 15.0
BRIEF_SECONDS = 0.02
"""Of the timing of a trial."""
ROUNDS = 15
PLACES = 5
"""Copies of the arguments that each program of a race has: one that lies badly can double the time of a call."""
SAMPLE_SECONDS = 0.003

Trace = list[Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: the winners of a race of its first `FEW` trials, and of one of the fastest of all trials.

    Each is a trace; None if all failed.
    """

    few: Trace | None
    best: Trace | None
    trials: int


@dataclass(frozen=True, slots=True)
class _Timed:
    """A trial of a search, with the seconds of a call by a brief timing."""

    seconds: float
    trace: Trace
    program: Candidate


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=64, help="of each function (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="MODEL")
    parser.add_argument(
        "--starter", nargs=2, type=Path, metavar=("PACK", "KEYS"), help="install a starter pack in a service of its own"
    )


def run(options: argparse.Namespace, raw: Raw) -> None:
    threads.set_defaults()
    target = this_cpu()
    if not raw.lines():
        raw.append({"kind": "plan", "trials": options.trials, "conditions": conditions()})
    for model in options.models:
        if ("answer", model) not in raw.latest("kind", "model"):
            raw.append({"kind": "answer", "model": model, **answered(model)})
    if options.starter is not None and ("share", "starter") not in raw.latest("kind", "pack"):
        path, keys = options.starter
        with embedded(_PORT) as client:
            found = share(client, path, keys, ResNet18().eval(), (torch.zeros(1, 3, 224, 224),))
        raw.append({"kind": "share", "pack": "starter", **found._asdict()})
    load_intrinsics(target)
    with ThreadPoolExecutor(threads.usable_cores()) as pool:
        for family in options.only:
            done = raw.latest("kind", "family", "function")
            for place, (name, workload) in enumerate(functions(family, target)):
                if ("function", family, name) not in done:
                    seeds = SEEDS if place == 0 else SEEDS[:1]
                    figures = compared(
                        workload, target, *(searched(workload, target, options.trials, seed, pool) for seed in seeds)
                    )
                    raw.append({"kind": "function", "family": family, "function": name, **figures})


def answered(model: str) -> dict[str, float]:
    """Return the seconds of each step of an instant answer, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.prior.answer", model]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(text.splitlines()[-1])
    return found


def searched(workload: tvm.IRModule, target: Target, trials: int, seed: int, pool: ThreadPoolExecutor) -> Found:
    """Search a function. The programs of a batch are built by the pool, and timed in this thread when all are."""
    arguments = random_arguments(workload)
    name = make_workload(workload["main"], "main").hash
    config = SearchConfig()
    model, rng = CostModel(seed, None, config.ranking), np.random.default_rng(seed)
    search = EvolutionarySearch(name, builtin_space(workload, target, seed), model, rng, config=config)
    found: list[_Timed] = []
    few, made = None, 0
    while made < trials and (batch := search.propose(min(config.batch, trials - made))):
        traces = [json.loads(candidate.trace_json or "null") for candidate in batch]
        programs = list(pool.map(lambda trace: _built(workload, trace, target), traces))
        for candidate, trace, program in zip(batch, traces, programs, strict=True):
            outcome = _measured(program, arguments)
            if isinstance(outcome, Measured) and isinstance(program, Candidate):
                found.append(_Timed(outcome.least, trace, program))
            search.observe(candidate, outcome)
        made += len(batch)
        if made <= FEW:
            few = _winner(found, arguments)
    return Found(few, _winner(found, arguments), made)


def _built(workload: tvm.IRModule, trace: Trace | None, target: Target) -> Candidate | Exception:
    if not _can_be_built(workload, trace, target):
        return RuntimeError(f"it is not built within {BUILD_SECONDS:g} s")
    try:
        return Candidate.built(workload, trace, target)
    except (RuntimeError, ValueError) as error:
        return error


def _can_be_built(workload: tvm.IRModule, trace: Trace | None, target: Target) -> bool:
    """Build a program in a process that is killed after `BUILD_SECONDS`: some that are unrolled take LLVM minutes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_build, args=(module_to_json(workload), trace, str(target)))
    process.start()
    process.join(BUILD_SECONDS)
    ended = process.exitcode is not None
    process.kill()
    process.join()
    return ended


def _build(workload: str, trace: Trace | None, target: str) -> None:
    found = target_from(target)
    load_intrinsics(found)
    with contextlib.suppress(RuntimeError, ValueError):
        Candidate.built(module_from_json(workload), trace, found)


def _measured(program: Candidate | Exception, arguments: list[Any]) -> Outcome:
    if isinstance(program, Exception):
        return Failure(Stage.BUILD, FailureKind.COMPILE, str(program), "")
    try:
        return Measured((_brief(program.bound(arguments)),), worker="")
    except (RuntimeError, ValueError) as error:
        return Failure(Stage.RUN, FailureKind.CRASH, str(error), "")


def _winner(found: Sequence[_Timed], arguments: list[Any]) -> Trace | None:
    """Return the trace that wins a race of the programs whose brief timings were the fastest."""
    contenders = sorted(found, key=lambda each: each.seconds)[:CONTENDERS]
    if not contenders:
        return None
    seconds = _raced({str(place): each.program for place, each in enumerate(contenders)}, arguments)
    return contenders[int(min(seconds, key=seconds.__getitem__))].trace


def compared(workload: tvm.IRModule, target: Target, search: Found, again: Found | None = None) -> dict[str, Any]:
    """Return the seconds of a call of the unscheduled program, of the first choice, and of what searches found.

    All run in turn. Programs that do not exist are left out; ``again`` is the best of the second search. Equal traces
    are one program, with one figure.
    """
    arguments = random_arguments(workload)
    traces = {"first": next(iter(prior.choices(workload, target)), None), "few": search.few, "best": search.best}
    if again is not None:
        traces["again"] = again.best
    programs = {json.dumps(trace): trace for trace in (None, *traces.values())}
    raced = _raced({key: Candidate.built(workload, trace, target) for key, trace in programs.items()}, arguments)
    seconds = {"unscheduled": raced["null"]} | {key: raced[json.dumps(trace)] for key, trace in traces.items() if trace}
    figures = {"seconds": seconds, "made": search.trials}
    return figures if again is None else figures | {"flipped": again.best != search.best}


def _brief(call: Callable[[], None]) -> float:
    """Return the least seconds of a call within a short time."""
    call()
    began, samples = time.perf_counter(), [_sample(call, 1)]
    number = max(1, int(1e-3 / samples[0]))
    while time.perf_counter() - began < BRIEF_SECONDS:
        samples.append(_sample(call, number))
    return min(samples)


def _raced(programs: dict[str, Candidate], arguments: list[Any]) -> dict[str, float]:
    """Return the median seconds of a call of each program: a sample a round, in turn, on `PLACES` sets of arguments."""
    places = [{name: program.bound(arguments) for name, program in programs.items()} for _ in range(PLACES)]
    numbers = {name: max(1, int(SAMPLE_SECONDS / _brief(call))) for name, call in places[0].items()}
    samples: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(ROUNDS):
        for name, call in places[turn % PLACES].items():
            call()
            samples[name].append(_sample(call, numbers[name]))
    return {name: statistics.median(each) for name, each in samples.items()}


def _sample(call: Callable[[], None], number: int) -> float:
    began = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - began) / number
