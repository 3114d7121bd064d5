"""The request of a job to the tuning loop and the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.budget import Budget
from tuner.codec import Base64
from tuner.search.config import SearchConfig
from tuner.types import TaskSpec


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """Tasks, the target's JSON, the user's traces (None: built-in space) and the rest of the budget.

    ``base_model`` is the device class's (`tuner.cost_model.model.train_base`), None where there is none yet;
    ``peak_flops`` is the device's measured peak in float32, operations per second.
    """

    tasks: Sequence[TaskSpec]
    target_json: str
    space: list[object] | None
    budget: Budget
    seed: int
    base_model: Base64 | None = None
    config: SearchConfig = SearchConfig()
    peak_flops: float | None = None
