"""What became of each function in `Client.apply` and `Client.compile`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

from loopwright.best import Best
from loopwright.codegen import threads as runtime_threads
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

    @property
    def threads(self) -> tuple[int, ...]:
        """The numbers of threads with which the bests for CPUs were certified, the smallest first; usually one."""
        targets = [function.best.target for function in self.functions if function.best]
        return tuple(sorted({target["num-cores"] for target in targets if "num-cores" in target}))

    def log(self) -> None:
        """Tell it: as a warning where something was missed, or where this process runs the bests with other threads."""
        logger.log(logging.WARNING if self.misses else logging.INFO, "%s", self)
        here, certified = runtime_threads.configured(), self.threads
        if here is None or not certified or here in certified:
            return
        numbers = " or ".join(map(str, certified))
        text = f"the bests were certified with {numbers} threads, and this process runs them with {here}"
        cores = runtime_threads.usable_cores()
        if here == cores:
            logger.info("%s, one for each core that it may use: expect other times than the certified ones", text)
        else:
            logger.warning(
                "%s, as its environment says; for the certified times, set %s=%d before the process starts",
                text,
                runtime_threads.NUM_THREADS,
                min(certified[-1], cores),
            )

    def __str__(self) -> str:
        lines = [f"{len(self.hits)} of {len(self.functions)} functions have a certified best"]
        for function in self.functions:
            gain = f", {ratio(function.best.speedup)} over the baseline" if function.best else ""
            packs = ", its weight packed once" if function.best and function.best.packs_weight else ""
            lines.append(f"  {function.name}: {function.outcome}{gain}{packs}")
        return "\n".join(lines)
