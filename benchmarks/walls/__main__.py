"""Builds, measures and searches for the same programs at every level of walls and without walls, in random order.

    .venv/bin/python -m benchmarks.walls [--minutes 12]

A round takes every workload at every level, one after the other; rounds follow until the time is up. A short run to
try it: ``--minutes 1 --programs 4``. Exits with status 1 if a requirement was missed. Figures go to
benchmarks/results/walls.json. `python -m benchmarks.walls.report --pack` packs them and writes the report.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.quality.conditions import conditions
from benchmarks.results import write_raw
from benchmarks.search.race import host_target
from benchmarks.walls.arms import Arm
from benchmarks.walls.programs import SUBJECTS, candidates
from benchmarks.walls.report import NAME, missed, text
from tuner.types import Workload
from workers.walls.levels import Level, obstacles

PROGRAMS = 8
DRAWN = 3
"""Times as many candidates are drawn; the fastest that can be built and measured are kept, as a search would."""
LEAST_ROUNDS = 3


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walls")
    parser.add_argument("--minutes", type=float, default=12.0, help="when to begin no further round")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="of each workload")
    return parser


def main() -> None:
    options = parser().parse_args()
    until = time.monotonic() + 60 * options.minutes
    target_json = host_target()
    cores = int(json.loads(target_json)["num-cores"])
    reasons = {level: reason for level, reason in obstacles().items() if reason is not None}
    levels = [Level.NONE, *(level for level in obstacles() if level not in reasons)]
    figures: dict[str, Any] = {
        "conditions": conditions(cores),
        "programs": options.programs,
        "missing": {level.value: reason for level, reason in reasons.items()},
        "bounds": {subject.name: subject.bound for subject in SUBJECTS},
        "rounds": [],
    }
    with contextlib.ExitStack() as stack:
        arms = [stack.enter_context(Arm(level, cores)) for level in levels]
        programs = [
            (workload, fastest(arms[0], workload, target_json, options.programs))
            for workload in (subject.workload() for subject in SUBJECTS)
        ]
        draw = random.Random(0)
        for arm in arms:
            arm.searching(programs[0][0], target_json)
        while len(figures["rounds"]) < LEAST_ROUNDS or time.monotonic() < until:
            figures["rounds"].append(run_round(arms, programs, target_json, draw))
            print(f"round {len(figures['rounds'])}", flush=True)
    print(text(figures))
    print(write_raw(NAME, figures))
    if missed(figures):
        sys.exit("\n".join(missed(figures)))


def fastest(arm: Arm, workload: Workload, target_json: str, count: int) -> list[str]:
    """Return the traces of the fastest of some candidates."""
    latencies: dict[str, float] = {}
    for trace in candidates(workload, target_json, DRAWN * count):
        with contextlib.suppress(RuntimeError):
            _, [latencies[trace]] = arm.trials(workload, [trace], target_json)
    if len(latencies) < count:
        sys.exit(f"{workload.name}: only {len(latencies)} programs can be measured; give fewer with --programs")
    return sorted(latencies, key=latencies.__getitem__)[:count]


def run_round(
    arms: Sequence[Arm], programs: Sequence[tuple[Workload, list[str]]], target_json: str, draw: random.Random
) -> dict[str, Any]:
    """Return by workload and level the seconds of all its trials and the latencies, and by level those of a search."""
    found: dict[str, Any] = {"trials": {}, "search": {}}
    for workload, traces in draw.sample(programs, len(programs)):
        taken = found["trials"][workload.name] = {}
        for arm in draw.sample(arms, len(arms)):
            seconds, latencies = arm.trials(workload, traces, target_json)
            taken[arm.level.value] = {"seconds": seconds, "latencies": latencies}
    for arm in draw.sample(arms, len(arms)):
        found["search"][arm.level.value] = arm.searching(programs[0][0], target_json)
    return found


if __name__ == "__main__":
    main()
