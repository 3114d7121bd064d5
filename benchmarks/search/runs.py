"""Runs of a search, and what the closing race of their cell says of them.

A *cell* is one workload with one seed: all arms ran on one machine, and every program that was the best of a run at
some time was timed again, interleaved with the others (`benchmarks.search.race`). All latencies here are those of that
race, never those that a run measured itself.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.code import this_code
from benchmarks.spread import geomean

PYTORCH = "pytorch"
"""Name of PyTorch's operator among the programs of a race."""
REFERENCE = "A"
"""The arm whose final quality is the goal: stock MetaSchedule."""
NEAR = 0.95
"""Share of the final quality to which times are taken."""


@dataclass(slots=True)
class Incumbent:
    """A trace that was the best so far.

    Attributes:
        seconds: Time since the start of the run.
        trial: Trial number, from 1.
        latency: Seconds a call, as the run itself measured it.

    The last incumbent of a Loopwright arm is the winner of its closing race.
    """

    seconds: float
    trial: int
    latency: float
    trace_json: str


@dataclass(slots=True)
class Run:
    """One run of one arm on one workload with one seed.

    Attributes:
        seconds: Wall-clock time of the whole run.
        peak_mb: Peak memory of the tuner's process in MiB.
        code: Digest of the code that ran (`this_code`).
    """

    arm: str
    workload: str
    seed: int
    machine: str
    seconds: float = 0.0
    trials: int = 0
    failed: int = 0
    peak_mb: float | None = None
    incumbents: list[Incumbent] = field(default_factory=list)
    code: str = field(default_factory=this_code)

    def observe(self, seconds: float, latency: float | None, trace_json: str) -> None:
        """Record a finished trial; ``latency`` is None if it failed."""
        self.trials += 1
        if latency is None:
            self.failed += 1
        elif not self.incumbents or latency < self.incumbents[-1].latency:
            self.incumbents.append(Incumbent(seconds, self.trials, latency, trace_json))

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.joinpath(f"{self.workload}.{self.arm}.{self.seed}.json").write_text(json.dumps(asdict(self)) + "\n")


@dataclass(frozen=True, slots=True)
class Timeline:
    """One run: ``steps`` are (seconds after its start, latency of the best so far in the closing race)."""

    arm: str
    workload: str
    seed: int
    machine: str
    code: str
    seconds: float
    trials: int
    failed: int
    steps: tuple[tuple[float, float], ...]
    peak_mb: float | None = None

    @classmethod
    def of(cls, run: dict[str, Any], latencies: dict[str, float]) -> Timeline:
        """Read a line: a run's record, with the latencies of the closing race by program name, or a timeline."""
        known = {name: run[name] for name in cls.__dataclass_fields__ if name in run}
        steps = (
            run["steps"]
            if "steps" in run
            else [
                (entry["seconds"], latencies[name])
                for entry in run["incumbents"]
                if (name := name_of(entry["trace_json"])) in latencies
            ]
        )
        return cls(**known | {"steps": tuple((seconds, latency) for seconds, latency in steps)})

    @property
    def final(self) -> float:
        """Latency of the run's answer, in seconds a call."""
        return self.steps[-1][1]

    def reaches(self, latency: float) -> float | None:
        """Return the seconds until the best so far was as fast; None if it never was."""
        return next((seconds for seconds, best in self.steps if best <= latency), None)

    def seconds_to(self, latency: float) -> float:
        """Return the same; a run that never was as fast is charged all its time."""
        seconds = self.reaches(latency)
        return self.seconds if seconds is None else seconds


@dataclass(frozen=True, slots=True)
class Cell:
    """``latencies`` and ``samples`` are those of the closing race, by program name; samples by process and round."""

    workload: str
    seed: int
    curves: dict[str, Timeline]
    latencies: dict[str, float]
    samples: dict[str, list[list[float]]]

    @property
    def name(self) -> str:
        return f"{self.workload}.{self.seed}"

    def quality(self, arm: str, reference: str = REFERENCE) -> float:
        """Return the reference's final latency over the arm's: above 1, the arm's code is faster."""
        return self.curves[reference].final / self.curves[arm].final


def cells(lines: Iterable[dict[str, Any]]) -> list[Cell]:
    """Return the complete cells among packed or raw lines, in the order of their first run."""
    races = {(line["workload"], line["seed"]): line for line in lines if line["kind"] == "race"}
    runs: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        if line["kind"] == "run" and ("steps" in line or (line["workload"], line["seed"]) in races):
            runs[line["workload"], line["seed"]].append(line)
    found = []
    for key, members in runs.items():
        race = races.get(key, {"seconds": {}, "samples": {}})
        curves = {line["arm"]: Timeline.of(line, race["seconds"]) for line in members}
        found.append(Cell(*key, curves, race["seconds"], race["samples"]))
    return found


def packed(lines: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield the last plan among raw lines, and the timelines and the races of its complete cells."""
    plans = [line for line in lines if line["kind"] == "plan"]
    if not plans:
        return
    here = [line for line in lines if line["key"] == plans[-1]["key"]]
    complete = cells(here)
    if complete:
        yield plans[-1]
    for cell in complete:
        for timeline in cell.curves.values():
            yield {"kind": "run", **asdict(timeline)}
        race = {"seconds": cell.latencies, "samples": cell.samples}
        yield {"kind": "race", "workload": cell.workload, "seed": cell.seed, **race}


def by_workload(values: Iterable[tuple[Cell, float]]) -> dict[str, float]:
    """Return geometric means over the seeds, by workload."""
    members: dict[str, list[float]] = defaultdict(list)
    for cell, value in values:
        members[cell.workload].append(value)
    return {workload: geomean(here) for workload, here in members.items()}


def overall(values: Iterable[tuple[Cell, float]]) -> float:
    """Return the geometric mean over workloads of their means: a workload counts the same with one seed or three."""
    return geomean(by_workload(values).values())


def name_of(trace_json: str) -> str:
    """Return the name of a program in a race."""
    return hashlib.sha256(trace_json.encode()).hexdigest()[:12]


def this_machine(model: str) -> str:
    """Return a name for this machine since its last boot: another one of the same model may share its host."""
    started = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return f"{model}, started as {started}"
