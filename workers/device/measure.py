"""Timing of candidates. Runs in a fork of a warm child, one fork for a batch, and its programs in a runner."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Iterator

from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import FailureKind, Stage
from tuner.types import Failure
from workers.clock import Clock
from workers.device.arguments import draw, tvm_device
from workers.device.device_state import state_reader
from workers.device.programs import BuiltPrograms
from workers.device.runner import Mailbox, ProgramError, Runner
from workers.entry import Confine, entry
from workers.messages import Device, MeasureBatch, MeasureProgress, Samples

SAMPLES = 5
SAMPLE_SECONDS = 0.002
"""A sample, except for the first, is the mean of as many calls as take so long: long against the jitter of the clock
and of the thread pool. A single call is not: of a convolution's programs of some tens of microseconds on two threads,
one call in ten took over 2.5 times the usual."""

SLOW_SECONDS = 0.02
"""If a call takes so long, the first one counts in spite of cold caches and threads, and three samples are enough."""
_SLOW_SAMPLES = 3

LONG_SECONDS = 0.5
"""A single call that takes so long is a sample: jitter is small against it, and the deadline is near."""

_AGREE = 1.1
"""Two samples agree if their ratio is no larger. Samples of a disturbed moment hardly ever agree."""


@entry
def measure(device: Device, batch: MeasureBatch, confine: Confine) -> Iterator[MeasureProgress | Clock]:
    """Load all candidates of a batch, then time them, and yield the progress.

    A candidate that is slower than its cutoff gets fewer samples: its rank is known well enough. On cuda an error ends
    the batch, because the context may be dead.
    """
    mailbox = Mailbox(batch.args)
    artifacts = [candidate.code for candidate in batch.candidates]
    with Runner(lambda: BuiltPrograms([(mailbox, artifacts)], tvm_device(device)), confine) as runner:
        mailbox.write(draw(batch.args, [False] * len(batch.args), "normal", secrets.randbits(32)))
        runner.keep()
        loaded = []
        for position in range(len(batch.candidates)):
            yield MeasureProgress(position)
            try:
                runner.load(position)
                loaded.append(position)
            except ProgramError as error:
                yield MeasureProgress(position, crash(error, Stage.RUN))
                if device.kind == "cuda":
                    return
        state = state_reader(device)
        yield Clock.STOP
        # One lock for all candidates: running builds are waited for once.
        with host_lock.quiet():
            for position in loaded:
                yield MeasureProgress(position)
                try:
                    runner.bind(position)
                    seconds = functools.partial(runner.seconds, position)
                    run_secs = sample(seconds, batch.candidates[position].cutoff)
                    yield MeasureProgress(position, Samples(tuple(run_secs), state()))
                except ProgramError as error:
                    yield MeasureProgress(position, crash(error, Stage.RUN))
                    if device.kind == "cuda":
                        return


def crash(error: ProgramError, stage: Stage) -> Failure:
    """Return the failure of a program that raised an exception."""
    return Failure(stage, FailureKind.CRASH, str(error))


def sample(seconds: Callable[[int], float], cutoff: float | None) -> list[float]:
    """Return seconds per call: 1 sample of a long program, 3 of a slow one (1 if the cutoff is 0), otherwise `SAMPLES`.

    Sampling ends early if the best two samples agree that the program is slower than the cutoff. One sample is not
    enough: it may be a hundred times too slow if the machine was disturbed. ``seconds`` is like `Runner.seconds` of
    the program.
    """
    samples = [seconds(0)]
    if samples[0] > (SLOW_SECONDS if cutoff == 0.0 else LONG_SECONDS):
        return samples
    if samples[0] <= SLOW_SECONDS:
        samples = [seconds(1) or seconds(1000)]  # a call may be shorter than the clock's resolution
    while True:
        least, *others = sorted(samples)
        slow = least > SLOW_SECONDS
        beyond = cutoff is not None and least > cutoff and bool(others) and others[0] <= _AGREE * least
        if beyond or len(samples) >= (_SLOW_SAMPLES if slow else SAMPLES):
            return samples
        samples.append(seconds(0) if slow else seconds(max(1, round(SAMPLE_SECONDS / least))))
