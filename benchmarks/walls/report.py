"""Writes docs/benchmarks/walls.md from the kept results.

.venv/bin/python -m benchmarks.walls.report [--pack]
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser
from benchmarks.search.tables import table

NAME = "walls"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"
REQUIRED = 0.97
"""Of the ratios over all workloads, of measured latencies and of trials a second."""
NONE = "none"
BATCH = 4
"""Candidates that a measurer takes at a time, as the service's fleet gives it."""
PROPOSALS = 3
PROPOSED = 8
_DEVIATIONS = 1.96


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median over rounds with the interval of its confidence."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


def ratio(values: Sequence[float]) -> Ratio:
    """Return the median of ratios; the interval is between order statistics, by the binomial's normal approximation."""
    ordered = sorted(values)
    half = _DEVIATIONS * math.sqrt(len(ordered)) / 2
    low = max(0, math.floor(len(ordered) / 2 - half))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + half) - 1)
    return Ratio(statistics.median(ordered), ordered[low], ordered[high])


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.walls.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def missed(figures: dict[str, Any]) -> list[str]:
    """Return what was missed, a sentence each."""
    return [
        f"{level}: {what}: {found} instead of {REQUIRED}"
        for level, what, found in _required(figures)
        if found.median < REQUIRED
    ]


def text(figures: dict[str, Any]) -> str:
    rounds, workloads = figures["rounds"], list(figures["bounds"])
    conditions = figures["conditions"]
    levels = _levels(figures)
    return Template(TEMPLATE.read_text()).substitute(
        rounds=len(rounds),
        conditions=f"{conditions['cpu']}, {conditions['threads']} cores, {conditions['date']}, "
        f"load average before the start {conditions['load']:.1f}",
        required=table(
            ["ratio over all workloads", "required", "measured"],
            (
                [f"{what}, {level}", f"{REQUIRED}", f"{found}{'' if found.median >= REQUIRED else ', **missed**'}"]
                for level, what, found in _required(figures)
            ),
        ),
        missing="".join(
            f"\nThis machine does not support the level {level}: {reason}.\n"
            for level, reason in figures["missing"].items()
        ),
        programs=figures["programs"],
        batch=BATCH,
        latencies=table(
            ["workload", "bound by", "fastest without walls", *levels],
            [
                *(
                    [
                        name,
                        bound,
                        f"{1e6 * _fastest(rounds, name):.1f} µs",
                        *(str(ratio(_latency_ratios(rounds, name, level))) for level in levels),
                    ]
                    for name, bound in figures["bounds"].items()
                ),
                ["all", "", "", *(str(_of_all(_latency_ratios, figures, level)) for level in levels)],
            ],
        ),
        trials=table(
            ["workload", "without walls", *levels],
            [
                *(
                    [
                        name,
                        f"{_rate(rounds, name, figures['programs']):.1f} /s",
                        *(str(ratio(_time_ratios(rounds, name, level))) for level in levels),
                    ]
                    for name in workloads
                ),
                ["all", "", *(str(_of_all(_time_ratios, figures, level)) for level in levels)],
            ],
        ),
        proposals=PROPOSALS,
        proposed=PROPOSED,
        search=table(
            ["without walls", *levels],
            [
                [
                    f"{statistics.median(found['search'][NONE] for found in rounds):.2f} s",
                    *(str(ratio(_search_ratios(rounds, level))) for level in levels),
                ]
            ],
        ),
        results=kept(NAME).name,
    )


def _levels(figures: dict[str, Any]) -> list[str]:
    return sorted(level for level in figures["rounds"][0]["search"] if level != NONE)


def _required(figures: dict[str, Any]) -> Iterator[tuple[str, str, Ratio]]:
    """Yield level, what is required of it, and what was measured."""
    for level in _levels(figures):
        yield level, "measured latencies", _of_all(_latency_ratios, figures, level)
        yield level, "trials per second", _of_all(_time_ratios, figures, level)


def _of_all(ratios: Any, figures: dict[str, Any], level: str) -> Ratio:
    return ratio([value for name in figures["bounds"] for value in ratios(figures["rounds"], name, level)])


def _latency_ratios(rounds: Sequence[dict[str, Any]], workload: str, level: str) -> list[float]:
    """Return one ratio a round: the median over programs."""
    return [
        statistics.median(
            without / behind
            for without, behind in zip(taken[NONE]["latencies"], taken[level]["latencies"], strict=True)
        )
        for taken in (found["trials"][workload] for found in rounds)
    ]


def _time_ratios(rounds: Sequence[dict[str, Any]], workload: str, level: str) -> list[float]:
    taken = [found["trials"][workload] for found in rounds]
    return [each[NONE]["seconds"] / each[level]["seconds"] for each in taken]


def _search_ratios(rounds: Sequence[dict[str, Any]], level: str) -> list[float]:
    return [found["search"][NONE] / found["search"][level] for found in rounds]


def _fastest(rounds: Sequence[dict[str, Any]], workload: str) -> float:
    """Return the latency of the fastest program, the median over rounds, in seconds."""
    latencies = [found["trials"][workload][NONE]["latencies"] for found in rounds]
    return min(statistics.median(program) for program in zip(*latencies, strict=True))


def _rate(rounds: Sequence[dict[str, Any]], workload: str, programs: int) -> float:
    return programs / statistics.median(found["trials"][workload][NONE]["seconds"] for found in rounds)


if __name__ == "__main__":
    main()
