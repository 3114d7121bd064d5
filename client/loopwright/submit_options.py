"""The options of a submission, for type checkers: `Client.submit` says what they mean."""

from __future__ import annotations

from typing import Any, TypedDict

from loopwright import schemas
from loopwright.codegen.math_mode import MathMode
from loopwright.frontends import stochastic
from loopwright.shape_plan import Extents, Portfolio


class SubmitOptions(TypedDict, total=False):
    """Keyword arguments of `Client.submit`, without the targets."""

    max_trials: int
    max_seconds: float | None
    max_device_seconds: float | None
    target_latency_us: float | None
    until: schemas.Until | None
    space: stochastic.Space | None
    shapes: dict[str, int] | list[dict[str, int]] | Portfolio | Extents | None
    seed: int
    name: str | None
    priority: int
    force: bool
    exact_math: bool
    math: MathMode
    visibility: schemas.Visibility
    gate: schemas.Gate | None
    labels: dict[str, str] | None
    idempotency_key: str | None
    example_inputs: Any
    spec: Any
