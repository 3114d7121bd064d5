"""Runs the arms of cells in random order, and races each cell whose arms have all run."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.runner import Raw
from benchmarks.search.race import race
from benchmarks.services import scratch
from tuner.ports import Fleet


@dataclass(frozen=True)
class Plan:
    """What is compared.

    Attributes:
        key: Names the code and the settings: raw lines with other keys do not count.
        cells: Workloads and seeds, in an order of which any first part is a fair sample.
        execute: Runs an arm on a workload with a seed; its record is the only JSON file that it leaves in a folder.
        described: What the report says of the plan.
        fleet: Races the programs of a cell.
    """

    key: str
    machine: str
    arms: Sequence[str]
    cells: Sequence[tuple[str, int]]
    execute: Callable[[str, str, int, Path], object]
    described: dict[str, Any]
    fleet: Fleet


def fill(plan: Plan, raw: Raw, until: float) -> None:
    """Run what is missing, until `time.monotonic` reaches ``until``.

    A cell that was begun on another machine, before a reboot or with another key begins again.
    """
    raw.append({"kind": "plan", "key": plan.key, **plan.described})
    for workload, seed in plan.cells:
        if not _filled(plan, raw, workload, seed, until):
            print("time is up; start again to continue")
            return
    print("complete")


def _filled(plan: Plan, raw: Raw, workload: str, seed: int, until: float) -> bool:
    """Run what is missing of a cell, and race it if all has run. Returns False if the time was up before."""
    begun = [line for line in raw.lines() if _is_of(line, plan.key, workload, seed)]
    if any(line["kind"] == "race" for line in begun):
        return True
    runs = {line["arm"]: line for line in begun if line["machine"] == plan.machine}
    for arm in random.Random(f"{workload}.{seed}").sample(plan.arms, len(plan.arms)):
        if arm in runs:
            continue
        if time.monotonic() > until:
            return False
        started = time.monotonic()
        with scratch() as folder:
            plan.execute(arm, workload, seed, folder)
            for path in folder.glob("*.json"):
                runs[arm] = {"kind": "run", "key": plan.key, **json.loads(path.read_text())}
                raw.append(runs[arm])
        outcome = "" if arm in runs else ", failed"
        print(f"{workload}.{seed} {arm}: {time.monotonic() - started:.0f} s{outcome}", flush=True)
    if len(runs) == len(plan.arms):
        started = time.monotonic()
        raced = race(plan.fleet, workload, (e["trace_json"] for run in runs.values() for e in run["incumbents"]))
        raw.append({"kind": "race", "key": plan.key, "workload": workload, "seed": seed, **raced})
        print(
            f"{workload}.{seed}: {len(raced['seconds'])} programs raced, {time.monotonic() - started:.0f} s", flush=True
        )
    return True


def _is_of(line: dict[str, Any], key: str, workload: str, seed: int) -> bool:
    return line["kind"] != "plan" and (line["key"], line["workload"], line["seed"]) == (key, workload, seed)
