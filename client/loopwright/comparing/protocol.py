"""The answers of the engines' processes, and the results made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ComparedVariant:
    """One choice of settings that works.

    Attributes:
        seconds: Time to compile it, up to the end of the first call.
        error: See `loopwright.comparing.case.largest_error`.
    """

    seconds: float
    error: float
    note: str


@dataclass(slots=True)
class Answer:
    """The outcome of the preparation; there are no ``variants`` if the engine cannot compute the model."""

    variants: dict[str, ComparedVariant] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    is_missing: bool = False
    """True where the engine is not installed."""

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Answer:
        return cls(
            **{**fields, "variants": {name: ComparedVariant(**each) for name, each in fields["variants"].items()}}
        )


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The answer to ``choose``: the fastest variant, and seconds a call of each."""

    variant: str
    latencies: dict[str, float]


@dataclass(frozen=True, slots=True)
class Sample:
    """The answer to ``sample``: seconds a call, and the peak memory of the process so far in MiB."""

    seconds: float
    peak_mb: float


@dataclass(slots=True)
class EngineResult:
    """The result of one engine.

    Attributes:
        choice: None if the engine cannot compute the model.
        samples: Seconds a call, by process and round.
        peak_mb: Peak memory of the last process, which compiled one variant only.
    """

    answer: Answer = field(default_factory=Answer)
    choice: EngineChoice | None = None
    samples: list[list[float]] = field(default_factory=list)
    peak_mb: float | None = None

    @property
    def chosen(self) -> ComparedVariant | None:
        """The variant that was timed."""
        return self.answer.variants[self.choice.variant] if self.choice else None

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> EngineResult:
        choice = EngineChoice(**fields["choice"]) if fields["choice"] else None
        return cls(Answer.from_json(fields["answer"]), choice, fields["samples"], fields["peak_mb"])
