"""Decide whether a model became slower: race its functions in turn with those of a reference, on the fleet.

Functions that are the same program in both are not measured. All others are raced, one round after another, each with
fresh processes; the ratio of the sums over the functions, weighted by their calls, is what is decided about.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loopwright.codegen.kinds import Change, GateVerdict
from tuner.errors import RaceFailed
from tuner.floor import least_seconds, race
from tuner.ports import Fleet, Meanwhile, Raced, RaceRequest
from tuner.races.sequential import DEFAULT, Estimate, SequentialConfig, Verdict, decide, estimate
from tuner.types import Failure, Workload

Key = tuple[str, str | None]
"""What a program is: its workload's hash and its trace."""


@dataclass(frozen=True, slots=True)
class GateProgram:
    """A function of a model, called ``weight`` times, with one schedule (None: unscheduled).

    ``seconds`` is a call's latency in its certificate, or in its record without one; ``outputs`` is that of
    `tuner.ports.RaceRequest`.
    """

    name: str
    weight: int
    workload: Workload
    outputs: tuple[bool, ...]
    trace_json: str | None
    seconds: float

    @property
    def key(self) -> Key:
        return self.workload.hash, self.trace_json


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """A function: seconds a call in the reference and in the candidate, and their ratio where both were measured."""

    name: str
    workload_hash: str
    change: Change
    reference: float | None
    candidate: float | None
    ratio: Estimate | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """``slowdown`` is the candidate's time over the reference's, for one run of the model; both in seconds."""

    verdict: GateVerdict
    rounds: int
    slowdown: Estimate
    reference: float
    candidate: float
    functions: tuple[GateOutcome, ...]


@dataclass(slots=True)
class _Measured:
    """Of one program: seconds a call by its certificate, the medians of the rounds, and why there are no more."""

    certified: float
    secs: list[float] = field(default_factory=list)
    failure: str | None = None

    def in_round(self, number: int) -> float:
        return self.secs[number] if number < len(self.secs) else self.certified

    @property
    def median(self) -> float:
        return statistics.median(self.secs) if self.secs else self.certified


_VERDICTS = {
    Verdict.BELOW: GateVerdict.PASSED,
    Verdict.ABOVE: GateVerdict.REGRESSION,
    Verdict.UNCLEAR: GateVerdict.UNCLEAR,
}


def compare(
    reference: Sequence[GateProgram],
    candidate: Sequence[GateProgram],
    bound: float,
    fleet: Fleet,
    *,
    meanwhile: Meanwhile,
    peak_flops: float | None = None,
    config: SequentialConfig = DEFAULT,
) -> GateResult:
    """Race the programs in which two models differ, until it is clear whether the slowdown exceeds ``bound``.

    ``bound`` is a ratio: 1.03 for three percent. A program of the candidate that fails is a regression. ``peak_flops``
    is as of `tuner.floor.least_seconds`.
    """
    same = {program.key for program in reference} & {program.key for program in candidate}
    # What is in both takes the same time in both, whatever their certificates say.
    measured = {each.key: _Measured(each.seconds) for each in (*candidate, *reference)}
    by_workload: dict[str, dict[str | None, GateProgram]] = {}
    for program in (*reference, *candidate):
        if program.key not in same:
            by_workload.setdefault(program.workload.hash, {})[program.trace_json] = program
    verdict, rounds = Verdict.BELOW, 0
    ratios: list[float] = []
    while by_workload and rounds < config.looks[-1]:
        for programs in by_workload.values():
            _race(list(programs.values()), measured, fleet, meanwhile, peak_flops)
        rounds += 1
        if any(measured[program.key].failure for program in candidate):
            break
        of_round = {key: each.in_round(rounds - 1) for key, each in measured.items()}
        ratios.append(_total(candidate, of_round) / _total(reference, of_round))
        verdict = Verdict.UNCLEAR
        if rounds in config.looks and (verdict := decide(ratios, bound, config)) is not Verdict.UNCLEAR:
            break
    functions = _functions(reference, candidate, measured)
    failed = any(each.change is Change.FAILED for each in functions)
    seconds = {key: each.median for key, each in measured.items()}
    return GateResult(
        GateVerdict.REGRESSION if failed else _VERDICTS[verdict],
        rounds,
        estimate(ratios) if ratios else Estimate(1.0, 1.0, 1.0),
        _total(reference, seconds),
        _total(candidate, seconds),
        functions,
    )


def _race(
    programs: Sequence[GateProgram],
    measured: Mapping[Key, _Measured],
    fleet: Fleet,
    meanwhile: Meanwhile,
    peak_flops: float | None,
) -> None:
    """Race the programs of one workload in one process, and add what each took."""
    first = programs[0]
    keys = {program.trace_json: str(number) for number, program in enumerate(programs) if program.trace_json}
    request = RaceRequest(
        module_json=first.workload.module_json,
        args=first.workload.args,
        outputs=first.outputs,
        contenders={key: trace for trace, key in keys.items()},
        yardsticks=any(program.trace_json is None for program in programs),
        math=first.workload.math,
    )
    try:
        result = race(fleet, request, meanwhile, least_seconds(first.workload, first.outputs, peak_flops))
    except RaceFailed as error:
        for program in programs:
            measured[program.key].failure = str(error)
        return
    for program in programs:
        trace = program.trace_json
        raced: Raced | Failure = result.baseline if trace is None else result.contenders[keys[trace]]
        if isinstance(raced, Failure):
            measured[program.key].failure = raced.message
        else:
            measured[program.key].secs.append(statistics.median(raced.run_secs))


def _total(programs: Sequence[GateProgram], seconds: Mapping[Key, float]) -> float:
    return sum(program.weight * seconds[program.key] for program in programs)


def _functions(
    reference: Sequence[GateProgram], candidate: Sequence[GateProgram], measured: Mapping[Key, _Measured]
) -> tuple[GateOutcome, ...]:
    """Return what became of each function. Those of the same workload belong together; of the rest, of one name."""
    left, outcomes = list(reference), []
    for program in candidate:
        before = _partner(program, left, candidate)
        if before is not None:
            left.remove(before)
        outcomes.append(_outcome(before, program, measured))
    removed = [
        GateOutcome(each.name, each.workload.hash, Change.REMOVED, measured[each.key].median, None) for each in left
    ]
    return (*outcomes, *removed)


def _partner(program: GateProgram, left: Sequence[GateProgram], candidate: Sequence[GateProgram]) -> GateProgram | None:
    taken = {each.workload.hash for each in candidate}
    equal = [each for each in left if each.workload.hash == program.workload.hash]
    named = [each for each in left if each.name == program.name and each.workload.hash not in taken]
    return next(iter([*equal, *named]), None)


def _outcome(before: GateProgram | None, program: GateProgram, measured: Mapping[Key, _Measured]) -> GateOutcome:
    now, name, workload = measured[program.key], program.name, program.workload.hash
    then = None if before is None else measured[before.key]
    reference = None if then is None else then.median
    if now.failure is not None:
        return GateOutcome(name, workload, Change.FAILED, reference, None, message=now.failure)
    if before is None or then is None:
        message = None if program.trace_json else "it has no schedule"
        return GateOutcome(name, workload, Change.ADDED, None, now.median, message=message)
    if before.key == program.key:
        return GateOutcome(name, workload, Change.SAME, reference, now.median)
    if then.failure is not None:
        message = f"the reference no longer runs: {then.failure}"
        return GateOutcome(name, workload, Change.CHANGED, reference, now.median, message=message)
    ratio = estimate([mine / theirs for mine, theirs in zip(now.secs, then.secs, strict=True)])
    return GateOutcome(name, workload, Change.CHANGED, reference, now.median, ratio)
