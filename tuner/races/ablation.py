"""Which decision makes a program fast: race it with its neighbours, each of which differs in one decision."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.codegen.kinds import Origin
from tuner.errors import RaceFailed
from tuner.floor import least_seconds, race
from tuner.inspection.answers import DecisionChange, Variant
from tuner.ports import Fleet, Meanwhile, Raced, RaceRequest
from tuner.races.grade import graded
from tuner.races.sequential import Estimate
from tuner.types import Failure, MeasureCandidate, Workload

_AT_ONCE = 7
"""Neighbours in one race: with the program itself as many as run in all rounds (`workers.device.race.FINALISTS`)."""
_SECONDS = 10.0
"""Of the rounds of one race. Not tuned."""


@dataclass(frozen=True, slots=True)
class Ablated:
    """A neighbour: seconds a call, and its time over that of the program in the same rounds; None if it failed."""

    changes: tuple[DecisionChange, ...]
    seconds: float | None
    slowdown: Estimate | None
    message: str | None = None


def ablate(
    workload: Workload,
    outputs: tuple[bool, ...],
    trace_json: str,
    variants: Sequence[Variant],
    fleet: Fleet,
    *,
    meanwhile: Meanwhile,
    peak_flops: float | None = None,
) -> list[Ablated]:
    """Race a program with its neighbours, a few at a time, and return them in their order.

    ``peak_flops`` is as of `tuner.floor.least_seconds`. Raises RaceFailed if the program itself, or the unscheduled
    one, cannot be run.
    """
    least = least_seconds(workload, outputs, peak_flops)
    done: list[Ablated] = []
    own = _hash(trace_json)
    for first in range(0, len(variants), _AT_ONCE):
        racing = {_hash(variant.trace_json): variant for variant in variants[first : first + _AT_ONCE]}
        request = RaceRequest(
            module_json=workload.module_json,
            args=workload.args,
            outputs=outputs,
            contenders={own: trace_json} | {key: variant.trace_json for key, variant in racing.items()},
            yardsticks=False,
            math=workload.math,
            seconds=_SECONDS,
        )
        result = race(fleet, request, meanwhile, least)
        program = result.contenders[own]
        if isinstance(program, Failure):
            raise RaceFailed(program.message)
        done += [_ablated(variant, result.contenders[key], program) for key, variant in racing.items()]
    return done


def _ablated(variant: Variant, entry: Raced | Failure, program: Raced) -> Ablated:
    if isinstance(entry, Failure):
        return Ablated(variant.changes, None, None, entry.message)
    slowdown, _ = graded(entry.run_secs, program.run_secs)
    return Ablated(variant.changes, statistics.median(entry.run_secs), slowdown)


def _hash(trace_json: str) -> str:
    return MeasureCandidate(trace_json, Origin.MUTATION).hash
