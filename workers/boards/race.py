"""The closing race of a task on a board.

The reference runs on the host, behind walls without a network (`results`). The race has the network and runs no
program on the host (`race`): it uploads programs and inputs, and compares what comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

import tvm

from loopwright.codegen.arrays import DRAWS
from loopwright.codegen.kinds import FailureKind, Stage
from tuner.ports import Raced
from tuner.types import Failure
from workers.board_messages import Link, ReferenceResults
from workers.boards.reference_results import packed, unpacked
from workers.boards.session import BoardSession, LostBoard, connected
from workers.clock import Clock
from workers.device.arguments import draw, to_device, tvm_device
from workers.device.build import with_packed_weight
from workers.device.check import Agreement, Expected, check, expected
from workers.device.programs import BuiltPrograms, Calls, called
from workers.device.race import interleaved, not_the_same_twice, through
from workers.device.runner import Mailbox, Runner
from workers.entry import Confine, entry
from workers.messages import HOST, Artifact, BuiltRace, RaceAnswer

MOST_BYTES = 48 * 2**20
"""Of the results on one kind of inputs: those on all kinds travel between processes in one frame."""


@entry
def results(race: BuiltRace, confine: Confine) -> Iterator[ReferenceResults]:
    """Yield the results for each kind of inputs."""
    if sum(info.bytes for info in race.args) > MOST_BYTES:
        most = f"{MOST_BYTES // 2**20} MiB"
        raise ValueError(f"the arguments take over {most}, the most that is compared for an RPC device")
    mailbox = Mailbox(race.args)
    with Runner(lambda: BuiltPrograms([(mailbox, [race.reference])], tvm_device(HOST)), confine) as runner:
        runner.load(0)
        for number, kind in enumerate(DRAWS):
            call = through(mailbox, runner, 0)
            on_host = expected(call, race.args, race.outputs, kind, race.seed + number)
            yield packed(on_host.inputs, on_host.results)


@entry
def race(link: Link, race: BuiltRace, results: list[ReferenceResults]) -> Iterator[RaceAnswer | Failure | Clock]:
    """Yield the answer, or the failure of the board."""
    try:
        with connected(link) as session:
            answer = yield from _raced(session, race, _expected(race, results))
    except LostBoard as error:
        answer = Failure(Stage.CERTIFY, FailureKind.DEVICE_LOST, str(error))
    yield answer


def _expected(race: BuiltRace, results: Sequence[ReferenceResults]) -> Iterator[Expected]:
    """Draw the inputs anew, which are the same for the same seed, and put the reference's results beside them."""
    for number, (kind, sent) in enumerate(zip(DRAWS, results, strict=True)):
        inputs = draw(race.args, race.outputs, kind, race.seed + number)
        on_host = unpacked(sent, inputs, race.args)
        yield Expected(kind, race.args, inputs, on_host, race.math)


def _raced(
    session: BoardSession, race: BuiltRace, expectations: Iterator[Expected]
) -> Generator[Clock, None, RaceAnswer | Failure]:
    """As `workers.device.race.run_race`; a program that ends the board's process, or a lost board, ends the race."""
    try:
        modules = [session.load(artifact) for artifact in race.contenders]
        yield Clock.START
        checks: list[Agreement | Failure] = [Agreement() for _ in modules]
        for results in expectations:
            for position, (module, artifact) in enumerate(zip(modules, race.contenders, strict=True)):
                before = checks[position]
                if isinstance(before, Agreement):
                    checks[position] = _checked(session, module, artifact, results, before)
                yield Clock.START
        if isinstance(checks[0], Failure):
            return RaceAnswer(tuple(not_the_same_twice(checks[0]) for _ in checks))
        arguments = to_device(draw(race.args, [False] * len(race.args), "normal", race.seed), session.device)
        runs = {}
        for position, (module, artifact) in enumerate(zip(modules, race.contenders, strict=True)):
            if isinstance(checks[position], Agreement) and (position or race.yardsticks):
                packed = with_packed_weight(module, artifact, arguments, session.device)
                runs[position] = _timed(Calls(module, session.device, packed))
        samples = yield from interleaved(runs, race.seed, repeats=race.repeats)
    except Exception as error:
        return session.failure(error, Stage.CERTIFY)
    return RaceAnswer(
        tuple(
            checked
            if isinstance(checked, Failure)
            else Raced(tuple(samples.get(position, ())), checked.max_abs_error, checked.max_rel_error)
            for position, checked in enumerate(checks)
        )
    )


def _checked(
    session: BoardSession, module: tvm.runtime.Module, artifact: Artifact, results: Expected, before: Agreement
) -> Agreement | Failure:
    """As `workers.device.check.check`, or the failure of what the program raises. Raises what was raised by a lost
    board."""
    try:
        return check(lambda inputs: called(module, artifact, inputs, session.device), results, before)
    except Exception as error:
        failure = session.failure(error, Stage.CERTIFY)
        if failure.kind is not FailureKind.CRASH:
            raise
        return failure


def _timed(calls: Calls) -> Callable[[int], float]:
    """Return a function of the number of calls: their mean by the board's clock, after a call that does not count."""
    return lambda number: calls.mean(max(1, number))
