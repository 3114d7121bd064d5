"""Requirements that were set before anything was measured, and what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import table

NO_RESULT = "no result"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A figure with what it must and should be.

    Attributes:
        measured: None if it could not be measured.
        shown: The figure in the words of the report, or why there is none.
        is_cost: Whether lower is better.
        unit: Follows the bounds.
    """

    what: str
    must: float
    aim: float
    measured: float | None
    shown: str
    is_cost: bool = False
    unit: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        if self._reaches(self.measured, self.aim):
            return "aim reached"
        return "must reached" if self._reaches(self.measured, self.must) else "**missed**"

    def _reaches(self, measured: float, bound: float) -> bool:
        return measured <= bound if self.is_cost else measured >= bound


def median_and_worst(
    what: str, costs: Mapping[str, float], median: tuple[float, float], worst: tuple[float, float]
) -> Iterator[Requirement]:
    """Yield the requirements, with what they must and should be, of the median and of the highest of costs by name."""
    middle = statistics.median(costs.values()) if costs else None
    shown = NO_RESULT if middle is None else f"{middle:.2f}"
    yield Requirement(f"{what}, median", *median, middle, shown, is_cost=True)
    yield highest_cost(f"{what}, worst", costs, *worst)


def highest_cost(what: str, costs: Mapping[str, float], must: float, aim: float, unit: str = "") -> Requirement:
    """Return the requirement of the highest of costs by name."""
    if not costs:
        return Requirement(what, must, aim, None, NO_RESULT, is_cost=True, unit=unit)
    name, value = max(costs.items(), key=lambda item: item[1])
    return Requirement(what, must, aim, value, f"{value:.2f}{unit}, {name}", is_cost=True, unit=unit)


def missed(found: Sequence[Requirement]) -> str:
    """Return sentences that say which requirements were missed or not measured."""
    below = [one for one in found if one.verdict == "**missed**"]
    unknown = [one for one in found if one.measured is None]
    count = len(found) - len(unknown)
    if below:
        which = "; ".join(f"{one.what} ({one.shown} instead of {one.must:g}{one.unit})" for one in below)
        was = "was" if len(below) == 1 else "were"
        sentences = [f"Of {count} requirements that were measured, {len(below)} {was} missed: {which}"]
    elif count:
        sentences = [f"All {count} requirements that were measured were reached"]
    else:
        sentences = ["No requirement was measured"]
    if unknown:
        sentences.append("Not measured: " + "; ".join(f"{one.what} ({one.shown})" for one in unknown))
    return ". ".join(sentences) + "."


def verdicts(found: Iterable[Requirement]) -> str:
    """Return the table of requirements."""
    rows = ((one.what, f"{one.must:g}{one.unit}", f"{one.aim:g}{one.unit}", one.shown, one.verdict) for one in found)
    return table(["requirement", "must", "aim", "measured", "verdict"], rows)
