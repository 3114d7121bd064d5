"""Records of the comparison: one run of one arm, and the closing race of a cell.

A run records when each trial's result was known, and every trace that was the best so far.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.results import RAW
from benchmarks.results import ROOT as ROOT

RUNS = RAW / "search" / "runs"
PYTORCH = "pytorch"
"""Name of PyTorch's operator among the programs of a race."""


@cache
def this_code() -> str:
    """Return a digest of the code of the search and the workers."""
    packages = ("tuner", "workers", "client/loopwright/codegen")
    files = sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]


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

    @property
    def file_name(self) -> str:
        return f"{self.workload}.{self.arm}.{self.seed}.json"

    def save(self, folder: Path) -> None:
        """Write the record atomically: a harness that was stopped continues with the complete records."""
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{self.file_name}"
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n")
        draft.rename(folder / self.file_name)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Run:
        incumbents = [Incumbent(**entry) for entry in fields["incumbents"]]
        return cls(**fields | {"incumbents": incumbents})


@dataclass(frozen=True, slots=True)
class Race:
    """Timings of all incumbents of a cell, measured side by side.

    Attributes:
        seconds: Median seconds a call, by program name (`name_of`, or `PYTORCH`).
        samples: Seconds a call by program name, process and round, of the programs that were not far too slow.
    """

    workload: str
    seed: int
    seconds: dict[str, float]
    samples: dict[str, list[list[float]]]


def load(path: Path) -> Run:
    return Run.from_json(json.loads(path.read_text()))


def name_of(trace_json: str) -> str:
    """Return the name of a program in a race."""
    return hashlib.sha256(trace_json.encode()).hexdigest()[:12]


def this_machine(model: str) -> str:
    """Return a name for this machine since its last boot: another one of the same model may share its host."""
    started = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return f"{model}, started as {started}"
