"""The keyword arguments of a submission, for type checkers: `Client.submit`, `Budget` and `Model` describe them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from loopwright import schemas
from loopwright.frontends import stochastic
from loopwright.model import ModelOptions


class BudgetOptions(TypedDict, total=False):
    """The limits and goals of a search, as `loopwright.schemas.Budget` describes them."""

    max_trials: int
    max_seconds: float | None
    max_device_seconds: float | None
    target_latency_us: float | None
    until: schemas.Until | None


class BudgetAndModelOptions(BudgetOptions, ModelOptions, total=False):
    """The options that `Client.submit` takes beside its own arguments."""


class SubmitOptions(BudgetAndModelOptions, total=False):
    """The keyword arguments of `Client.submit`, without the targets."""

    space: stochastic.Space | None
    seed: int
    name: str | None
    priority: int
    force: bool
    visibility: schemas.Visibility
    gate: schemas.Gate | None
    labels: dict[str, str] | None
    tags: Sequence[str]
    description: str
    idempotency_key: str | None
    seconds_per_function: float | None
