"""The closing race of a task: results are compared with the unscheduled program's, then timings are interleaved.

Runs in one fresh fork of a warm child: all contenders share the process, the inputs and the moment.
"""

from __future__ import annotations

import heapq
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np
import tvm

from loopwright.codegen.arrays import DRAWS
from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import Stage
from tuner.ports import Raced
from tuner.types import Failure, LibraryTime
from workers.clock import Clock
from workers.device import gpu_library, library
from workers.device.arguments import draw, to_device, tvm_device
from workers.device.build import load, with_packed_weight
from workers.device.check import Agreement, Expected, check, expected
from workers.device.device_state import state_reader
from workers.device.measure import LONG_SECONDS, Calls, crash
from workers.device.yardstick import Yardstick
from workers.entry import entry
from workers.messages import BuiltRace, Device, RaceAnswer

SAMPLE_SECONDS = 0.01
"""Of one sample: the mean of as many calls as take so long. Not tuned."""
ROUNDS = 15
"""Not tuned."""
MIN_ROUNDS = 5
"""Not tuned."""
RACE_SECONDS = 15.0
"""Of all rounds together. Slow programs are raced in fewer rounds, but never fewer than `MIN_ROUNDS`. Not tuned."""
HEATS = 3
"""Rounds in which all contenders run; the best of them run in the other rounds. Not tuned."""
FINALISTS = 8
"""Not tuned."""
FAR_SLOWER = 2.0
"""A baseline that is so many times slower than the fastest contender does not run after the heats, if its rounds alone
would take longer than `RACE_SECONDS`. Not tuned."""
REST_SECONDS = 0.12
"""Before and after a library on a CPU: its threads and those of TVM's runtime spin for 0.1 s after their work, and
would occupy each other's cores."""
BEAT_SECONDS = 1.0
"""A round that takes longer restarts the deadline; in a shorter one the frame would disturb the timings. Not tuned."""


@entry
def race(device: Device, race: BuiltRace) -> Iterator[RaceAnswer | Clock]:
    answer = yield from run_race(device, race)
    yield answer


def run_race(device: Device, race: BuiltRace) -> Generator[Clock, None, RaceAnswer]:
    """Check all contenders, time those with right results together, and return both.

    ``run_secs[i]`` of all contenders come from round i, the library's from each round, or from every few rounds if it
    rests. Contenders that are not among the best `FINALISTS` in the first `HEATS` rounds end there, and so does the
    baseline if it is slow (`FAR_SLOWER`). On cuda an error of a contender is raised.
    """
    on_device = tvm_device(device)
    reference = load(race.reference)
    modules = [load(artifact) for artifact in race.contenders]
    yardstick = None
    checks: list[Agreement | Failure] = [Agreement() for _ in modules]
    for number, kind in enumerate(DRAWS):
        results = expected(reference, race.args, race.outputs, kind, race.seed + number, race.math)
        yield Clock.START
        if race.yardsticks and race.library and number == 0:
            yardstick = _yardstick(device, on_device, race.outputs, results)
            yield Clock.START
        for position, (module, artifact) in enumerate(zip(modules, race.contenders, strict=True)):
            before = checks[position]
            if isinstance(before, Agreement):
                try:
                    checks[position] = check(module, artifact, results, on_device, before)
                except Exception as error:
                    if device.kind == "cuda":
                        raise  # the context may be dead: no later result of this process would count
                    checks[position] = crash(error, Stage.CERTIFY)
            yield Clock.START
    if isinstance(checks[0], Failure):
        return RaceAnswer(tuple(not_the_same_twice(checks[0]) for _ in checks), None)
    arguments = to_device(draw(race.args, [False] * len(race.args), "normal", race.seed), on_device)
    state = state_reader(device)
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        runs = {}
        for position, (module, artifact) in enumerate(zip(modules, race.contenders, strict=True)):
            if isinstance(checks[position], Agreement) and (position or race.yardsticks):
                packed = with_packed_weight(module, artifact, arguments, on_device)
                runs[position] = _evaluated(Calls(module, on_device, packed))
        if yardstick is not None:
            runs[len(modules)] = yardstick.seconds
        library_run = None if yardstick is None else len(modules)
        rests = yardstick is not None and yardstick.rests
        samples = yield from interleaved(runs, race.seed, library=library_run, rests=rests)
        device_state = state()
    return RaceAnswer(
        tuple(
            checked
            if isinstance(checked, Failure)
            else Raced(tuple(samples.get(position, ())), checked.max_abs_error, checked.max_rel_error)
            for position, checked in enumerate(checks)
        ),
        None if yardstick is None else LibraryTime(yardstick.name, tuple(samples[len(modules)])),
        device_state,
    )


def _yardstick(
    device: Device, on_device: tvm.runtime.Device, outputs: Sequence[bool], results: Expected
) -> Yardstick | None:
    """Return the call of a vendor's library that gives the results, if the device has a library with one."""
    if device.kind == "cuda":
        return gpu_library.yardstick(results.inputs, outputs, results.results, on_device, math=results.math)
    return library.yardstick(results.inputs, outputs, results.results)


def not_the_same_twice(failure: Failure) -> Failure:
    """Return the failure of a function whose unscheduled program gives different results in two runs."""
    reason = (
        "two runs of the function gave different results, so no schedule of it can be checked; does it read memory "
        f"that it has not written? {failure.message}"
    )
    return replace(failure, message=reason)


def _evaluated(calls: Calls) -> Callable[[int], float]:
    """Return a function of the number of calls: their mean after one call that does not count; for 0, one cold call."""
    return lambda number: calls.mean(number) if number else calls.cold()


def interleaved(
    runs: dict[int, Callable[[int], float]], seed: int, *, library: int | None = None, rests: bool = False
) -> Generator[Clock, None, dict[int, list[float]]]:
    """Return seconds per call of each run, one sample a round, in a new random order each round.

    A single call that takes longer than `LONG_SECONDS` is a sample. Run 0 is the baseline, if there is one. The run
    ``library`` goes on after the heats, however fast it is. If it ``rests``, before and after each of its samples, it
    takes part in `MIN_ROUNDS` of the rounds, or a few more, and otherwise in all.
    """
    first = {i: _first(run) for i, run in runs.items()}
    numbers = {
        i: 0 if seconds > LONG_SECONDS else max(1, round(SAMPLE_SECONDS / max(seconds, 1e-9)))
        for i, seconds in first.items()
    }
    # One more call is made than is counted.
    seconds = {i: (numbers[i] + 1) * first[i] for i in runs}

    def lasting(figures: dict[int, float]) -> list[int]:
        """Return the runs that continue after the heats, by their seconds per call."""
        fastest = heapq.nsmallest(FINALISTS, (i for i in figures if i not in (0, library)), key=figures.__getitem__)
        if 0 not in figures:
            return fastest
        slow = ROUNDS * seconds[0] > RACE_SECONDS and any(figures[0] > FAR_SLOWER * figures[i] for i in fastest)
        return [i for i in figures if i in fastest or i == library or (i == 0 and not slow)]

    final_seconds = sum(seconds[i] for i in lasting(first))
    rounds = int(np.clip(RACE_SECONDS / max(final_seconds, 1e-9), MIN_ROUNDS, ROUNDS))
    order = np.random.default_rng(seed)
    samples: dict[int, list[float]] = {i: [] for i in runs}
    racing = list(runs)
    for number in range(rounds):
        if number == HEATS:
            racing = lasting({i: statistics.median(samples[i]) for i in runs})
        if sum(seconds[i] for i in racing) > BEAT_SECONDS:
            yield Clock.START
        for i in map(int, order.permutation(racing)):
            if i != library or not rests:
                samples[i].append(runs[i](numbers[i]))
            elif number % (rounds // MIN_ROUNDS) == 0:
                time.sleep(REST_SECONDS)
                samples[i].append(runs[i](numbers[i]))
                time.sleep(REST_SECONDS)
    return samples


def _first(run: Callable[[int], float]) -> float:
    """Estimate the seconds per call: by the second call, unless the first one takes long."""
    seconds = run(0)
    return seconds if seconds > LONG_SECONDS else run(1)
