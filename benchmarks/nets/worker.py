"""In the child of a worker: a net is measured again and again, as a whole and by its certified functions."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.nets.what import What
from tuner.types import TensorInfo
from workers.clock import Clock
from workers.device.arguments import draw, tvm_device
from workers.device.programs import BuiltPrograms
from workers.device.race import interleaved
from workers.device.runner import Mailbox, Runner
from workers.device.whole_model import NotMeasured, WholeModel, in_a_loop
from workers.entry import Confine, entry
from workers.messages import Artifact, Device, ModelProgram

SECONDS = 0.02
"""Of all rounds of a function: five samples of 4 ms, the least that a race takes."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its certified program; the model calls it ``weight`` times."""

    args: tuple[TensorInfo, ...]
    program: Artifact
    weight: int


@entry
def seconds(
    device: Device, model: ModelProgram, functions: tuple[Function, ...], questions: Iterator[What], confine: Confine
) -> Iterator[float]:
    """Yield the answer to each question: seconds of a call of the model, or the weighted sum of the functions' seconds.

    The model is timed as `workers.device.whole_model` times it for a job, the functions one after another as
    `workers.device.race` times a contender. Raises NotMeasured.
    """
    mailboxes = [Mailbox(each.args) for each in functions]
    programs = [(mailbox, [each.program]) for mailbox, each in zip(mailboxes, functions, strict=True)]
    with contextlib.ExitStack() as stack:
        whole = stack.enter_context(Runner(lambda: WholeModel(device, model), confine))
        if whole.name:
            raise NotMeasured(whole.name)
        certified = stack.enter_context(Runner(lambda: BuiltPrograms(programs, tvm_device(device)), confine))
        whole.load(0)
        for position, (mailbox, each) in enumerate(zip(mailboxes, functions, strict=True)):
            certified.load(position)
            mailbox.write(draw(each.args, [False] * len(each.args), "normal", position))
        asked: dict[What, Callable[[], float]] = {
            What.MODEL: lambda: statistics.median(in_a_loop(partial(whole.seconds, 0))),
            What.FUNCTIONS: lambda: _sum(certified, functions),
        }
        for question in questions:
            yield asked[question]()


def _sum(runner: Runner, functions: Sequence[Function]) -> float:
    return math.fsum(each.weight * _median(runner, position) for position, each in enumerate(functions))


def _median(runner: Runner, position: int) -> float:
    runner.keep(position)
    runner.bind(position)
    race = interleaved({1: partial(runner.seconds, position)}, position, seconds=SECONDS, repeats=False)
    return statistics.median(_result(race)[1])


def _result(race: Iterator[Clock]) -> dict[int, list[float]]:
    """Return what a race returns, whose words about its clock nobody needs here."""
    while True:
        try:
            next(race)
        except StopIteration as end:
            found: dict[int, list[float]] = end.value
            return found
