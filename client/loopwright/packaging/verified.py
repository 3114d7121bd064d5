"""The results of verifying a package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loopwright.errors import LoopwrightError
from loopwright.packaging.manifest import Manifest

State = Literal["holds", "wrong", "slower", "not checked"]


class NoPackage(LoopwrightError, ValueError):
    """A folder is no package, or was changed since it was made; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The result for the whole model (``name`` is empty) or for a function.

    ``holds``: the results are right, and a tuned function is faster than the unscheduled program. ``wrong``: they are
    not right. ``slower``: they are right, and the function is slower than the unscheduled program, by more than noise.
    ``not checked``: there is no schedule to check. ``us`` and ``certified_us`` are microseconds a call, here and when
    it was certified; ``speedup`` is over the unscheduled program, here, with its interval.
    """

    name: str
    """Name of the function; empty for the whole model."""
    state: State
    """``holds``, ``wrong``, ``slower`` or ``not checked``."""
    reason: str | None = None
    """Why, in words, or that it holds but takes much longer here than certified; else None."""
    error: float | None = None
    """Largest difference of the results over the reference's largest magnitude; None if nothing was checked."""
    us: float | None = None
    """Latency of a call here, in microseconds."""
    certified_us: float | None = None
    """Latency in the certificate, in microseconds."""
    speedup: tuple[float, float, float] | None = None
    """Over the unscheduled program, here: the estimate and the ends of its interval."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The whole model, and its functions in the manifest's order."""

    manifest: Manifest
    """What the package says of itself."""
    model: Verified
    """The whole model."""
    functions: tuple[Verified, ...]
    """Its functions, in the manifest's order."""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong and nothing slower than without tuning."""
        return all(each.state in ("holds", "not checked") for each in (self.model, *self.functions))
