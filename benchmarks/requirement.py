"""Requirements that were set before anything was measured, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.report import table


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


def missed(found: Sequence[Requirement]) -> str:
    """Return sentences that say which requirements were missed or not measured."""
    below = [one for one in found if one.verdict == "**missed**"]
    unknown = [one for one in found if one.measured is None]
    was = "was" if len(below) == 1 else "were"
    sentences = [f"Of {len(found) - len(unknown)} requirements that were measured, {len(below)} {was} missed"]
    if below:
        sentences[0] += ": " + "; ".join(f"{one.what} ({one.shown} instead of {one.must:g}{one.unit})" for one in below)
    if unknown:
        sentences.append("Not measured: " + "; ".join(f"{one.what} ({one.shown})" for one in unknown))
    return ". ".join(sentences) + "."


def verdicts(found: Iterable[Requirement]) -> str:
    """Return the table of requirements."""
    rows = ((one.what, f"{one.must:g}{one.unit}", f"{one.aim:g}{one.unit}", one.shown, one.verdict) for one in found)
    return table(["requirement", "must", "aim", "measured", "verdict"], rows)
