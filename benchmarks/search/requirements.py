"""What was required of the search, and what was measured."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.search.comparison import Comparison, overall

NEAR = 0.95
"""Share of the reference's final quality that counts as nearly as good."""
SMALL = 2e-4
"""Seconds a call below which a kernel is small."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """``must`` and ``aim`` were set before anything was measured; ``unit`` follows each of the figures."""

    what: str
    must: float
    aim: float
    measured: float
    unit: str = "x"

    @property
    def verdict(self) -> str:
        if self.measured < self.must:
            return "**missed**"
        return "must reached" if self.measured < self.aim else "aim reached"


def requirements(results: Comparison) -> Iterator[Requirement]:
    for what, arm, other, must, aim in (
        ("cold, time to 95 % of A's final quality, against A", "C", "A", 5, 10),
        ("cold, the same against A1", "C", "A1", 2, 4),
        ("warm, time to 95 % of A's final quality, against A", "W", "A", 20, 50),
    ):
        measured = overall((cell, cell.speedup(arm, other, NEAR).run_charged) for cell in results.cells)
        yield Requirement(what, must, aim, measured)
    quality = overall((cell, cell.quality("C")) for cell in results.cells)
    yield Requirement(f"cold, final quality after {results.plan.trials} trials, against A", 1.10, 1.30, quality)
    rates = [rate for here in rates_by_machine(results).values() for rate in here]
    if rates:
        what = f"cold, trials a second on kernels under {SMALL * 1e6:.0f} µs, median"
        yield Requirement(what, 4, 10, statistics.median(rates), "/s")


def rates_by_machine(results: Comparison) -> dict[str, list[float]]:
    """Return trials a second of the cold runs on small kernels, by machine. Unlike a ratio, a rate depends on it."""
    rates: dict[str, list[float]] = defaultdict(list)
    for cell in results.cells:
        if cell.reference.final < SMALL:
            run = cell.curves["C"].run
            rates[run.machine].append(run.trials / run.seconds)
    return dict(sorted(rates.items()))


def missed(found: list[Requirement]) -> str:
    """Return a sentence that says which requirements were missed."""
    below = [
        f"{one.what} ({_figure(one.measured, one)} instead of {_figure(one.must, one)})"
        for one in found
        if one.measured < one.must
    ]
    if not below:
        return f"All {len(found)} requirements were met."
    return (
        f"{len(below)} of {len(found)} requirements {'was' if len(below) == 1 else 'were'} missed: {'; '.join(below)}."
    )


def rows(found: list[Requirement]) -> list[list[str]]:
    return [
        [one.what, *(_figure(value, one) for value in (one.must, one.aim, one.measured)), one.verdict] for one in found
    ]


def _figure(value: float, requirement: Requirement) -> str:
    digits = 2 if requirement.aim < 2 else 1
    shown = f"{value:g}" if value == int(value) else f"{value:.{digits}f}"
    return shown + requirement.unit
