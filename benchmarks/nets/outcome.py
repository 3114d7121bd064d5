"""The outcome of the benchmark: what the kept lines say of each net."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.nets.what import What
from benchmarks.quality.engines import OURS
from benchmarks.quality.outcome import Outcome
from loopwright.comparing.protocol import EngineResult
from loopwright.comparing.ratios import Ratio, Samples, paired


@dataclass(frozen=True)
class NetOutcome:
    """One net.

    Attributes:
        idle: The engines on an idle machine.
        loaded: The same beside other work.
        fleet: What the fleet measures in the rounds of the idle machine, by `What`; older lines have nothing.
        tuned: What the service says of the job.
        starts: Seconds and MiB of fresh processes that load the net, by engine.
    """

    name: str
    idle: Outcome
    loaded: Outcome
    fleet: Mapping[str, EngineResult]
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

    @cached_property
    def measured_over_process(self) -> Ratio | None:
        """Time of the whole model on the fleet over that in the user's process, in the same rounds."""
        return _paired(self._fleet(What.MODEL), self._ours)

    @cached_property
    def process_over_sum(self) -> Ratio | None:
        """Time in the user's process over the sum of the certified functions' times, in the same rounds."""
        return _paired(self._ours, self._fleet(What.FUNCTIONS))

    @property
    def _ours(self) -> Samples:
        return self.idle.engines[OURS].samples

    def fleet_us(self, what: What) -> float | None:
        """Microseconds of a call as the fleet measured it in the same rounds."""
        seconds = [each for process in self._fleet(what) for each in process]
        return 1e6 * statistics.median(seconds) if seconds else None

    def _fleet(self, what: What) -> Samples:
        return self.fleet[what].samples if what in self.fleet else []

    def start(self, engine: str, figure: str) -> float:
        """Return the median of a figure of the fresh processes: ``seconds`` or ``resident_mib``."""
        return statistics.median(each[figure] for each in self.starts[engine])


def outcomes(lines: Sequence[Mapping[str, Any]]) -> list[NetOutcome]:
    return [
        NetOutcome(
            name=line["net"],
            idle=_outcome(line, "idle"),
            loaded=_outcome(line, "loaded"),
            fleet={name: EngineResult.from_json(result) for name, result in line.get("fleet", {}).items()},
            tuned=line["tuned"],
            starts=line["starts"],
        )
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


def _paired(numerator: Samples, denominator: Samples) -> Ratio | None:
    """Return the ratio within rounds; None if there is no round with both."""
    return paired(numerator, denominator) if any(numerator) and any(denominator) else None
