"""The keyword arguments of a submission, for type checkers: `Client.submit` and `Model` describe them."""

from __future__ import annotations

from loopwright import schemas
from loopwright.frontends import stochastic
from loopwright.model import ModelOptions


class SubmitOptions(ModelOptions, total=False):
    """The keyword arguments of `Client.submit`, without the targets."""

    max_trials: int
    max_seconds: float | None
    max_device_seconds: float | None
    target_latency_us: float | None
    until: schemas.Until | None
    space: stochastic.Space | None
    seed: int
    name: str | None
    priority: int
    force: bool
    visibility: schemas.Visibility
    gate: schemas.Gate | None
    labels: dict[str, str] | None
    idempotency_key: str | None
