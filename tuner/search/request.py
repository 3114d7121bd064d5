"""What a job asks of the tuning loop and of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.codec import Base64
from tuner.search.config import SearchConfig
from tuner.types import TaskSpec


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What to tune: tasks, the target's JSON, the user's traces (None: built-in space) and the limits.

    ``max_trials`` counts search trials of all tasks (baselines do not count); ``max_seconds`` is what is left;
    ``max_device_seconds`` limits the time that trials and baselines of these tasks take in measuring slots; ``target``
    is the latency of one run of the model (seconds, the sum over the job's tasks of weight times best latency) that is
    fast enough; ``until_plateau`` ends the search when it is not expected to gain much more (`tuner.search.plateau`);
    ``base_model`` is the device class's (`tuner.cost_model.model.train_base`), None where there is none yet.
    """

    tasks: Sequence[TaskSpec]
    target_json: str
    space: list[object] | None
    max_trials: int
    max_seconds: float | None
    seed: int
    base_model: Base64 | None = None
    config: SearchConfig = SearchConfig()
    max_device_seconds: float | None = None
    target: float | None = None
    until_plateau: bool = False
