"""The parameters of the tuning algorithm.

An ablation or a variant is `dataclasses.replace(config, …)`. Each field says where its default comes from; "not tuned"
is a first choice that nobody has varied. `benchmarks.search.ablation` measures what each mechanism contributes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tuner.cost_model.gaussian_process import GaussianProcessConfig
from tuner.cost_model.model import RankingConfig


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """All parameters of a tuning run. Counts are programs unless said otherwise; shares are between 0 and 1."""

    # The loop.
    batch: int = 8
    """Candidates proposed at a time. With 64, a benchmark with one seed took 1.2 times as long."""
    cutoff: float | None = 1.5
    """Multiple of the task's best latency above which a candidate is not sampled in full; None samples all in full."""
    contenders: int = 24
    """Candidates in the closing race. The best program was found as low as the twentieth place of the search's own."""
    gain_window: int = 24
    """Trials over which a task's recent gain is taken, to share the budget among tasks. Not tuned."""
    optimistic_gain: float = 0.5
    """Relative gain, divided by a task's trials, that its next trial is given at least. Not tuned."""

    # What a batch is made of.
    random_share: float = 0.03
    """Share of proposals that are drawn at random once the task's own trials guide the search. Not tuned."""
    early_random_share: float = 0.5
    """The same share while only trials of other workloads guide the search. Not tuned."""
    local_share: float = 0.5
    """Share of the guided proposals that come from local search; the others come from the population."""
    max_duplicates: int = 128
    """Random draws in a row that are known already, after which the space counts as exhausted. Not tuned."""
    max_rejections: int = 512
    """Random draws in a row that the space rejects, after which it counts as exhausted. Some spaces for GPUs accept one
    program in a hundred."""

    # Evolution: the population, and what joins it for each batch.
    pool: int = 192
    """Programs kept from batch to batch: replaying a program costs more than ranking it again. Not tuned."""
    parents: int = 24
    """Parents taken from the best of the pool, and as many from the fastest measured. Not tuned."""
    newcomers: int = 2
    """Random programs that join. Not tuned."""
    offspring: int = 3
    """Programs that join by crossover or by TVM's mutators, which a user's space may bring along. Not tuned."""
    crossover_share: float = 0.1
    """Share of crossover among the offspring. Not tuned."""
    redraw_share: float = 0.15
    """Share of mutations that draw one decision anew; TVM's mutators know the choices of its own rules only."""
    screened: int = 6
    """Programs that join by screening: the mutated decision vectors with the highest acquisition. Not tuned."""
    screening_draws: int = 512
    """Decision vectors mutated for each screening. Not tuned."""
    max_changes: int = 3
    """Decisions that a screened vector of the population may change. Not tuned."""

    # Local search: the best measured programs with one decision changed.
    local_centres: int = 3
    """Measured programs around which local search looks. Not tuned."""
    local_tries: int = 3
    """Screened vectors replayed for each program that local search is to propose: some are rejected. Not tuned."""

    # The surrogate.
    beta: float = 1.0
    """UCB coefficient: standard deviations added to the predicted mean. Local search uses 0. Not tuned."""
    kriging_believer: bool = True
    """Whether a batch is selected as if its pending points had been measured with the predicted results."""
    failure_factor: float | None = 2.0
    """A failed trial counts as this multiple of the slowest latency; None leaves failures out of the models."""
    gp_warm_up: int = 8
    """Trials of the task before its Gaussian process replaces the ranking. Not tuned."""
    gp_points: int = 256
    """Newest trials that the Gaussian process is fitted to, in cubic time; 0 leaves prediction to the ranking."""
    gp: GaussianProcessConfig = GaussianProcessConfig()
    """How the hyperparameters of the Gaussian process are fitted."""
    ranking: RankingConfig = RankingConfig()
    """When the ranking is trained, and on what."""
