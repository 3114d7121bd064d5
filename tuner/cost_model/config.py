"""The parameters of the models. No TVM and no XGBoost here: the loop, which has neither, holds them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankingConfig:
    """When the ranking is trained, and on what."""

    warm_up: int = 16
    """Samples of the job before its own model is trained. Not tuned."""
    base_trust: float = 0.6
    """Share of the job's pairs that a base model must order correctly once the own model is trained; chance is 0.5."""
    rounds: int = 40
    """Boosting rounds of a job's own model. Not tuned."""
    base_rounds: int = 120
    """Boosting rounds of a base model, which has more samples. Not tuned."""
    max_group: int = 512
    """Samples of a workload that are used, the newest ones: the number of pairs is quadratic. Not tuned."""


@dataclass(frozen=True, slots=True)
class GaussianProcessConfig:
    """Hyperparameters. None of the values is tuned."""

    length_scales: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    """Length scales, of which the likeliest is taken."""
    noise: float = 0.05
    """Noise variance, as a share of the variance of the targets."""
