"""The parameters of the tuning algorithm.

An ablation or a variant is `dataclasses.replace(config, …)`. Each field says where its default comes from; "not tuned"
is a first choice that nobody has varied. The benchmark `ablation` measures what each mechanism contributes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tuner.cost_model.config import GaussianProcessConfig, RankingConfig


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """All parameters of a tuning run. Counts are programs unless said otherwise."""

    # The space.
    rules: bool = True
    """Whether sketches of Loopwright's own rules are in the built-in space, beside those of TVM."""
    experimental: bool = False
    """Whether rules of which no program has been timed on its hardware propose seeds, which are measured first."""

    # The loop.
    batch: int = 8
    """Candidates proposed at a time. With 64, a benchmark with one seed took 1.2 times as long."""
    cutoff: float | None = 1.5
    """Multiple of the task's best latency above which a candidate is not sampled in full; with None, all are. It saves
    6 % of the time of all calls, and lost no best program of 209 (docs/benchmarks/search.md)."""
    contenders: int = 24
    """Candidates in the closing race. The best program was found as low as the twentieth place of the search's own."""
    repeated_share: float = 0.05
    """Least share of the model's time with which a task's closing race is repeated if its result is not clear. A race
    with repetitions takes up to 10 s longer, and a model may have hundreds of small tasks. Not tuned."""
    small_contenders: int = 8
    """Candidates in the closing race of a task with a smaller share. Not tuned."""
    race_seconds: float = 15.0
    """Of all rounds of a closing race. Slow programs are raced in fewer rounds. Not tuned."""
    closing_share: float = 0.6
    """Most of a job's time that is kept for its closing races and the timing of the whole model: a function without a
    certificate is unscheduled, which costs a model more than a better schedule of another one gains. Not tuned."""
    rounds_share: float = 0.2
    """Most of a job's time that is kept for all rounds of the races of tasks that matter. Not tuned."""
    overtime_share: float = 0.05
    """Of a job's time, how much longer its closing races may take before tasks are left without a certificate. Not
    tuned."""
    gain_window: int = 24
    """Trials over which a task's recent gain is taken, to share the budget among tasks. Not tuned."""
    optimistic_gain: float = 0.5
    """Relative gain, divided by a task's trials, that its next trial is given at least. Not tuned."""
    trivial_share: float = 0.01
    """Share of the model's time below which a task gets no trials after its first candidate. Not tuned."""
    trivial_shares: float = 0.05
    """Share of the model's time that all such tasks may take together: a model may have hundreds of small tasks. Not
    tuned."""
    plateau_window: int = 64
    """Trials from which the gain of the next minute is extrapolated, for a search that stops at a plateau. With 32
    instead, searches of one function lost 1.9 % of their quality; with 64 none (docs/benchmarks/quality.md)."""
    plateau_window_per_task: int = 8
    """The window has at least this many trials for each task. With none, searches of several functions lost 1.3 % of
    their quality; with 8, 0.4 % (docs/benchmarks/quality.md)."""
    plateau_gain: float = 0.01
    """Expected relative gain of the next minute below which a search is at its plateau: what users notice at most."""

    # What a batch is made of.
    ranked: int = 16
    """Random programs from which the ranking selects until enough trials of the task have ended. Not tuned."""
    parents: int = 24
    """The fastest measured programs, which are mutated. Not tuned."""
    draws: int = 512
    """Decision vectors mutated for each batch. Not tuned."""
    max_changes: int = 3
    """Decisions that a mutant may change. Not tuned."""
    tries: int = 3
    """Mutants replayed for each program that is to be proposed: the space rejects some. Not tuned."""
    max_duplicates: int = 128
    """Random draws in a row that are known already, after which the space counts as exhausted. Not tuned."""
    max_rejections: int = 512
    """Random draws in a row that the space rejects, after which it counts as exhausted. Some spaces for GPUs accept one
    program in a hundred."""

    # The surrogate.
    failure_factor: float = 2.0
    """A failed trial counts as this multiple of the slowest latency. Not tuned."""
    gp_warm_up: int = 8
    """Trials of the task before its Gaussian process replaces the ranking. Not tuned."""
    gp_points: int = 256
    """Newest trials that the Gaussian process is fitted to, in cubic time. Not tuned."""
    gp: GaussianProcessConfig = GaussianProcessConfig()
    """Length scales and noise of the Gaussian process."""
    ranking: RankingConfig = RankingConfig()
    """When the ranking is trained, and on what."""
