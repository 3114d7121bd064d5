"""Plans the closing of a job: how long each closing race may take, and how much time to keep for all of them.

The races of functions that matter get the time. One that takes less than a twentieth of the model's time decides among
fewer contenders, in fewer rounds: a wrong choice costs a small share of a small share.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.search.config import SearchConfig

_LEAST_SECONDS = 0.1
"""Of a race's rounds: about what `MIN_ROUNDS` of five programs take with short samples (`workers.device.race`)."""
_LEAST_CONTENDERS = 3
"""Of a race with the least time. Not tuned."""
_ROUNDS_OF = 0.1
"""Seconds of rounds that a contender of a small task is to be worth. Not tuned."""
_ROUNDS_SECONDS = 12.0
"""Of a race of a task that matters: with all contenders, and with repetitions. Not tuned."""
_REPEATABLE = 10.0
"""Seconds with which a race has the time to be repeated: it pauses, and waits for other processes. Not tuned."""
_ALONE, _TOGETHER = 2.5, 1.5
"""What a race takes beside its rounds, in builds, if it has four processes of its own, or shares them with others: a
reference and a baseline are built, and all programs are checked. On two cores with 50 to 70 functions."""
_CALLS = 9
"""Of a slow unscheduled function in its race: three of its reference, on all threads, three in checks, and four that
are timed."""
_MOST_TOGETHER = 8
"""Races in one set of processes. One program that ends a process costs all of them. Not tuned."""
_MOST_BYTES = 2**26
"""Of the arguments of races in one set of processes, which are there several times. Not tuned."""
_OF_MODEL = 0.5
"""What a function of the whole model takes to be built, in builds: the model is built by one process, without
processes and a linker for each function."""
_FIRST_BUILD = 0.2
"""Seconds of a build before one is known."""


@dataclass(frozen=True, slots=True)
class Closing:
    """What is known of a task that is to be raced.

    ``share`` is of the model's time, ``unscheduled`` the seconds of a call of its unscheduled function, and ``bytes``
    the size of its arguments.
    """

    share: float
    unscheduled: float
    bytes: int

    def matters(self, config: SearchConfig) -> bool:
        """Return whether the race is run alone, and repeated if its result is not clear."""
        return self.share >= config.repeated_share


@dataclass(frozen=True, slots=True)
class RacePlan:
    """``seconds`` is the time of all rounds of a race; each repetition may take as long again."""

    contenders: int
    seconds: float
    repeats: bool


def plan_race(share: float, others: float, left: float, config: SearchConfig) -> RacePlan:
    """Plan the next race of a job.

    Args:
        share: of its task in the model's time.
        others: the shares of the tasks whose races follow, together.
        left: seconds that are left for the rounds of all of these; infinite if the job has no limit.
    """
    fraction = share / (share + others) if share else 0.0
    part = left if math.isinf(left) else left * fraction
    matters = share >= config.repeated_share
    repeats = matters and part >= _REPEATABLE
    seconds = min(config.race_seconds, max(_LEAST_SECONDS, part / 3 if repeats else part))
    most = config.contenders if matters else config.small_contenders
    return RacePlan(min(most, max(_LEAST_CONTENDERS, int(seconds / _ROUNDS_OF))), seconds, repeats)


def together(closings: Sequence[Closing], config: SearchConfig) -> int:
    """Return how many of some races, in the order in which they are run, the next set of processes is to run."""
    if closings[0].matters(config):
        return 1
    sizes = itertools.accumulate(each.bytes for each in closings[:_MOST_TOGETHER])
    return max(1, sum(size <= _MOST_BYTES for size in sizes))


def beside(closings: Sequence[Closing], builds: Sequence[float], config: SearchConfig) -> float:
    """Return the seconds that races take beside their rounds, by those that builds of the job took."""
    build = statistics.median(builds or [_FIRST_BUILD])
    in_builds = sum(_ALONE if each.matters(config) else _TOGETHER for each in closings)
    return build * in_builds + math.fsum(_CALLS * each.unscheduled for each in closings)


def closing_seconds(whole: float, closings: Sequence[Closing], builds: Sequence[float], config: SearchConfig) -> float:
    """Return the seconds to keep for closing a job that may take ``whole`` seconds."""
    matter = sum(each.matters(config) for each in closings)
    rounds = min(matter * _ROUNDS_SECONDS, config.rounds_share * whole) + len(closings) * _LEAST_SECONDS
    needed = rounds + beside(closings, builds, config) + model_seconds(len(closings), builds)
    return min(needed, config.closing_share * whole)


def model_seconds(functions: int, builds: Sequence[float]) -> float:
    """Return the seconds to keep for building and timing a model of so many functions as a whole."""
    return _OF_MODEL * functions * statistics.median(builds or [_FIRST_BUILD]) if functions > 1 else 0.0
