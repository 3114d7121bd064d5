"""The outcome of the benchmark: what the kept lines say of each net."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.quality.engines import OURS
from benchmarks.quality.outcome import Outcome
from loopwright.comparing.protocol import EngineResult


@dataclass(frozen=True)
class NetOutcome:
    """One net.

    Attributes:
        idle: The engines on an idle machine.
        loaded: The same beside other work.
        tuned: What the service says of the job.
        starts: Seconds and MiB of fresh processes that load the net, by engine.
    """

    name: str
    idle: Outcome
    loaded: Outcome
    tuned: Mapping[str, Any]
    starts: Mapping[str, Sequence[Mapping[str, float]]]

    @property
    def job_over_budget(self) -> float:
        """Seconds of the job over its ``max_seconds``."""
        return float(self.tuned["seconds"] / self.tuned["max_seconds"])

    @property
    def process_us(self) -> float | None:
        """Microseconds of a call in the user's process; None if it could not be compiled."""
        seconds = self.idle.latency(OURS)
        return None if seconds is None else 1e6 * seconds

    @property
    def measured_over_process(self) -> float | None:
        """Time of the whole model on the fleet over that in the user's process."""
        return self.tuned["measured_us"] / self.process_us if self.tuned["measured_us"] and self.process_us else None

    @property
    def process_over_sum(self) -> float | None:
        """Time in the user's process over the sum of the functions' certified times; None if some have none."""
        return self.process_us / self.tuned["sum_us"] if self.process_us and self.tuned["sum_us"] else None

    def start(self, engine: str, figure: str) -> float:
        """Return the median of a figure of the fresh processes: ``seconds`` or ``resident_mib``."""
        return statistics.median(each[figure] for each in self.starts[engine])


def outcomes(lines: Sequence[Mapping[str, Any]]) -> list[NetOutcome]:
    return [
        NetOutcome(line["net"], _outcome(line, "idle"), _outcome(line, "loaded"), line["tuned"], line["starts"])
        for line in lines
    ]


def _outcome(line: Mapping[str, Any], state: str) -> Outcome:
    return Outcome(
        name=line["net"],
        family=f"{len(line['tuned']['tasks'])} functions",
        kind="net",
        precision=line["precision"],
        tolerance=line["tolerance"],
        engines={name: EngineResult.from_json(result) for name, result in line[state].items()},
        conditions=line["conditions"],
        tuned=None,
        stock=None,
    )
