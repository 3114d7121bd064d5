"""The closing race of a task: results are compared with the unscheduled program's, then timings are interleaved.

Runs in one fresh fork of a warm child, which judges, and its programs in runners: all share the inputs and the moment.
"""

from __future__ import annotations

import heapq
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np

from loopwright.codegen.arrays import DRAWS, Array
from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import Grade, Stage
from tuner.ports import Raced
from tuner.races.grade import SITTING, graded
from tuner.types import Failure, LibraryTime
from workers.clock import Clock
from workers.device import gpu_library, library
from workers.device.arguments import draw, tvm_device
from workers.device.check import Agreement, Call, Expected, check, expected
from workers.device.device_state import state_reader
from workers.device.measure import LONG_SECONDS, SLOW_SECONDS, crash
from workers.device.other_load import OtherLoad
from workers.device.programs import BuiltPrograms
from workers.device.runner import Mailbox, ProgramError, Runner
from workers.device.yardstick import Yardstick
from workers.entry import Confine, entry
from workers.messages import HOST, Artifact, BuiltRace, Device, RaceAnswer

SAMPLE_SECONDS = 0.01
"""Of one sample: the mean of as many calls as take so long. Not tuned."""
SHORT_SAMPLE_SECONDS = 0.004
"""Of one sample at least, if the rounds may not take longer. A program may claim a fifth less than such a sample takes
(`workers.device.runner.SLACK_SECONDS`). Not tuned."""
ROUNDS = 15
"""Not tuned."""
MIN_ROUNDS = 5
"""Not tuned."""
HEATS = 3
"""Rounds in which all contenders run; the best of them run in the other rounds. Not tuned."""
FINALISTS = 8
"""Not tuned."""
FAR_SLOWER = 2.0
"""A baseline that is so many times slower than the fastest contender does not run after the heats, if its rounds alone
would take longer than all may. Not tuned."""
REPEATS = 2
"""Times that all rounds are taken once more while the speedup is not clean (see `tuner.races.grade`). Not tuned."""
PAUSE_SECONDS = 0.2
"""Before each `SITTING` rounds of a repetition: a machine that others use changes within seconds. Not tuned."""
BEAT_SECONDS = 1.0
"""A round that takes longer restarts the deadline; in a shorter one the frame would disturb the timings. Not tuned."""


@entry
def race(device: Device, race: BuiltRace, confine: Confine) -> Iterator[RaceAnswer | Clock]:
    answer = yield from run_race(device, race, confine)
    yield answer


def run_race(device: Device, race: BuiltRace, confine: Confine) -> Generator[Clock, None, RaceAnswer]:
    """Check all contenders, time those with right results together, and return both; then run the races that follow.

    ``run_secs[i]`` of all contenders come from round i, as the library's. Contenders that are not among the best
    `FINALISTS` in the first `HEATS` rounds end there, and so does the baseline if it is slow (`FAR_SLOWER`). On cuda an
    error of a contender is raised.

    The references, the baselines, the contenders and the library run in a process each, so that no contender reaches
    what it is compared with. Those of all races are loaded at once, since a process costs tens of milliseconds.
    """
    races = (race, *race.following)
    mailboxes = [Mailbox(each.args) for each in races]
    with ExitStack() as stack:

        def started(on: Device, programs: Sequence[Sequence[Artifact]]) -> Runner:
            functions = list(zip(mailboxes, programs, strict=True))
            runner = stack.enter_context(Runner(lambda: BuiltPrograms(functions, tvm_device(on)), confine))
            for position in range(sum(map(len, programs))):
                runner.load(position)
            return runner

        reference = started(HOST, [[each.reference] for each in races])
        baseline = started(device, [each.contenders[:1] for each in races])
        others = started(device, [each.contenders[1:] for each in races])
        answers, first = [], 0
        for number, (each, mailbox) in enumerate(zip(races, mailboxes, strict=True)):
            count = len(each.contenders) - 1
            entrants = [(baseline, number), *((others, first + place) for place in range(count))]
            answers.append((yield from _run_one(device, each, mailbox, (reference, number), entrants, confine)))
            first += count
    return replace(answers[0], following=tuple(answers[1:]))


_Program = tuple[Runner, int]
"""The runner that holds it, and its position there."""


def _run_one(
    device: Device,
    race: BuiltRace,
    mailbox: Mailbox,
    reference: _Program,
    entrants: Sequence[_Program],
    confine: Confine,
) -> Generator[Clock, None, RaceAnswer]:
    """Run the race of one function, whose programs are loaded; ``entrants`` are the baseline and the contenders."""
    with ExitStack() as stack:
        vendor: Runner | None = None
        checks: list[Agreement | Failure] = [Agreement() for _ in entrants]
        for number, kind in enumerate(DRAWS):
            results = expected(
                through(mailbox, *reference), race.args, race.outputs, kind, race.seed + number, race.math
            )
            yield Clock.START
            if race.yardsticks and race.library and number == 0 and has_yardstick(device, race.outputs, results):
                vendor = stack.enter_context(Runner(partial(yardstick, device, race.outputs, results), confine))
                yield Clock.START
            for position, (runner, place) in enumerate(entrants):
                before = checks[position]
                if isinstance(before, Agreement):
                    try:
                        checks[position] = check(through(mailbox, runner, place), results, before)
                    except ProgramError as error:
                        if device.kind == "cuda":
                            raise  # the context may be dead: no later result of this process would count
                        checks[position] = crash(error, Stage.CERTIFY)
                yield Clock.START
        if isinstance(checks[0], Failure):
            return RaceAnswer(tuple(not_the_same_twice(checks[0]) for _ in checks), None)
        mailbox.write(draw(race.args, [False] * len(race.args), "normal", race.seed))
        for runner, place in entrants[:2]:  # the contenders are in one runner
            runner.keep(place)
        state = state_reader(device)
        yield Clock.STOP
        with host_lock.quiet():
            yield Clock.START
            runs: dict[int, Callable[[int], float]] = {}
            for position, (runner, place) in enumerate(entrants):
                if isinstance(checks[position], Agreement) and (position or race.yardsticks):
                    runner.bind(place)
                    runs[position] = partial(runner.seconds, place)
            if vendor is not None and vendor.name:
                runs[len(entrants)] = partial(vendor.seconds, 0)
            load = OtherLoad()
            samples = yield from interleaved(
                runs,
                race.seed,
                seconds=race.seconds,
                library=len(entrants),
                repeats=race.repeats,
                rest=load.wait,
            )
            device_state = state()
    return RaceAnswer(
        tuple(
            checked
            if isinstance(checked, Failure)
            else Raced(tuple(samples.get(position, ())), checked.max_abs_error, checked.max_rel_error)
            for position, checked in enumerate(checks)
        ),
        LibraryTime(vendor.name, tuple(samples[len(entrants)])) if vendor is not None and vendor.name else None,
        device_state,
        waited=load.waited,
    )


def through(mailbox: Mailbox, runner: Runner, position: int) -> Call:
    """Return the call of a runner's program."""

    def call(inputs: Sequence[Array]) -> list[Array]:
        mailbox.write(inputs)
        runner.run(position)
        return mailbox.read()

    return call


def has_yardstick(device: Device, outputs: Sequence[bool], results: Expected) -> bool:
    """Return whether a library may give the results, so that it is worth a process."""
    return device.kind == "cuda" or library.may_compute(results.inputs, outputs, results.results)


def yardstick(device: Device, outputs: Sequence[bool], results: Expected) -> Yardstick:
    """Return the call of a vendor's library that gives the results; one without a name if the device has none."""
    if device.kind == "cuda":
        found = gpu_library.yardstick(results.inputs, outputs, results.results, tvm_device(device), math=results.math)
    else:
        found = library.yardstick(results.inputs, outputs, results.results)
    return found or Yardstick("", lambda number: 0.0)


def not_the_same_twice(failure: Failure) -> Failure:
    """Return the failure of a function whose unscheduled program gives different results in two runs."""
    reason = (
        "two runs of the function gave different results, so no schedule of it can be checked; does it read memory "
        f"that it has not written? {failure.message}"
    )
    return replace(failure, message=reason)


def interleaved(
    runs: dict[int, Callable[[int], float]],
    seed: int,
    *,
    seconds: float = 15.0,
    library: int | None = None,
    repeats: bool = True,
    rest: Callable[[], None] = lambda: None,
) -> Generator[Clock, None, dict[int, list[float]]]:
    """Return seconds per call of each run, one sample a round, in a new random order each round.

    All rounds together may take so many ``seconds``, but `MIN_ROUNDS` are run in any case, with shorter samples if
    those would take longer.

    A single call that takes longer than `LONG_SECONDS` is a sample, and one of run 0, which is the baseline, if it
    takes longer than `SLOW_SECONDS`: caches make little difference to it. The run
    ``library`` goes on after the heats, however fast it is. If the speedup over the baseline is not clean then, those
    that are left run in as many rounds again, after a ``rest`` and with pauses, up to `REPEATS` times if ``repeats``.
    """
    first = {i: _first(run, SLOW_SECONDS if i == 0 else LONG_SECONDS) for i, run in runs.items()}
    sample = float(np.clip(seconds / (MIN_ROUNDS * max(len(runs), 1)), SHORT_SAMPLE_SECONDS, SAMPLE_SECONDS))
    alone = {i for i, call in first.items() if call > (SLOW_SECONDS if i == 0 else LONG_SECONDS)}
    numbers = {i: 0 if i in alone else max(1, round(sample / max(call, 1e-9))) for i, call in first.items()}
    # One more call is made than is counted.
    lasts = {i: (numbers[i] + 1) * first[i] for i in runs}

    def lasting(figures: dict[int, float]) -> list[int]:
        """Return the runs that continue after the heats, by their seconds per call."""
        fastest = heapq.nsmallest(FINALISTS, (i for i in figures if i not in (0, library)), key=figures.__getitem__)
        if 0 not in figures:
            return fastest
        slow = ROUNDS * lasts[0] > seconds and any(figures[0] > FAR_SLOWER * figures[i] for i in fastest)
        return [i for i in figures if i in fastest or i == library or (i == 0 and not slow)]

    round_seconds = sum(lasts[i] for i in lasting(first))
    rounds = int(np.clip(seconds / max(round_seconds, 1e-9), MIN_ROUNDS, ROUNDS))
    order = np.random.default_rng(seed)
    samples: dict[int, list[float]] = {i: [] for i in runs}

    def run(racing: list[int], count: int) -> Generator[Clock, None, None]:
        for _ in range(count):
            if sum(lasts[i] for i in racing) > BEAT_SECONDS:
                yield Clock.START
            for i in map(int, order.permutation(racing)):
                samples[i].append(runs[i](numbers[i]))

    yield from run(list(runs), HEATS)
    racing = lasting({i: statistics.median(samples[i]) for i in runs})
    yield from run(racing, rounds - HEATS)
    for _ in range(REPEATS if repeats else 0):
        if _is_clear(samples, [i for i in racing if i != library]):
            break
        rest()
        for done in range(0, rounds, SITTING):
            time.sleep(PAUSE_SECONDS)
            yield from run(racing, min(SITTING, rounds - done))
    return samples


def _is_clear(samples: dict[int, list[float]], racing: list[int]) -> bool:
    """Return whether more rounds would say nothing new: the speedup of the fastest is clean, or surely none."""
    if 0 not in racing or len(racing) == 1:
        return True
    fastest = min((i for i in racing if i != 0), key=lambda i: statistics.median(samples[i]))
    interval, grade = graded(samples[0], samples[fastest])
    return grade is Grade.CLEAN or interval.high < 1.0


def _first(run: Callable[[int], float], long: float) -> float:
    """Estimate the seconds per call: by the second call, unless the first one takes ``long`` seconds."""
    seconds = run(0)
    return seconds if seconds > long else run(1)
