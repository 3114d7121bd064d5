"""One run of one arm, as it is kept: when each trial was known, and every trace that was the best so far."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "docs" / "benchmarks" / "search" / "runs"


@cache
def this_code() -> str:
    """A name for the code of the search and the workers as it is now."""
    files = sorted(path for package in ("tuner", "workers") for path in (ROOT / package).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]


@dataclass(slots=True)
class Incumbent:
    """A trace that was the best so far: seconds after the start, trial number from 1, its own reported latency.

    Of Loopwright's arms the last is the winner of its closing race.
    """

    seconds: float
    trial: int
    latency: float
    trace_json: str


@dataclass(slots=True)
class Run:
    """``seconds`` is the wall-clock of the whole run, ``peak_mb`` the tuner process's peak memory."""

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
        """Take note of a finished trial; ``latency`` None where it failed."""
        self.trials += 1
        if latency is None:
            self.failed += 1
        elif not self.incumbents or latency < self.incumbents[-1].latency:
            self.incumbents.append(Incumbent(seconds, self.trials, latency, trace_json))

    @property
    def file_name(self) -> str:
        return f"{self.workload}.{self.arm}.{self.seed}.json"

    def save(self, folder: Path) -> None:
        """Write whole or not at all: a harness that is stopped goes on with what is complete."""
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{self.file_name}"
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n")
        draft.rename(folder / self.file_name)


def load(path: Path) -> Run:
    fields = json.loads(path.read_text())
    fields.setdefault("code", "not recorded")
    fields["incumbents"] = [Incumbent(**entry) for entry in fields["incumbents"]]
    return Run(**fields)


def this_machine(model: str) -> str:
    """The machine since it was started: one of the same model may be busy with others, and slower."""
    started = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return f"{model}, started as {started}"


def peak_mb() -> float:
    """This process's peak memory. Not `getrusage`'s, which begins with that of the process that started it."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024
