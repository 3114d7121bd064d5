"""What became of each function in `Client.apply` and `Client.compile`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

from loopwright.best import Best
from loopwright.units import ratio

logger = logging.getLogger("loopwright")

Outcome = Literal["tuned", "baseline", "missed"]


@dataclass(frozen=True, slots=True)
class AppliedFunction:
    """What became of one PrimFunc: ``tuned`` (a schedule was applied), ``baseline`` (known: TVM's own default is the
    best) or ``missed`` (nothing is known for the target). ``best`` is None exactly when it was missed."""

    name: str
    outcome: Outcome
    best: Best | None


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """What hit and what missed, function by function, in order of name."""

    functions: tuple[AppliedFunction, ...]

    @property
    def hits(self) -> tuple[AppliedFunction, ...]:
        """The functions that the service knows: tuned, or best as they are."""
        return tuple(function for function in self.functions if function.outcome != "missed")

    @property
    def misses(self) -> tuple[AppliedFunction, ...]:
        return tuple(function for function in self.functions if function.outcome == "missed")

    def log(self) -> None:
        """Tell it: as a warning where something was missed."""
        logger.log(logging.WARNING if self.misses else logging.INFO, "%s", self)

    def __str__(self) -> str:
        lines = [f"{len(self.hits)} of {len(self.functions)} functions have a certified best"]
        for function in self.functions:
            gain = f", {ratio(function.best.speedup)} over the baseline" if function.best else ""
            lines.append(f"  {function.name}: {function.outcome}{gain}")
        return "\n".join(lines)
