"""Timing of programs on a board over RPC. Runs in forks of a warm child; each has a connection of its own.

The board's clock counts: TVM's time evaluator runs on the board, so that the network is no part of a timing. What a
program raises is its own failure if the board still answers afterwards, and otherwise the board counts as lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopwright.codegen import host_lock
from loopwright.codegen.arrays import Array
from tuner.types import Failure, FailureKind, Stage
from workers.arguments import draw, to_device
from workers.boards.messages import Link
from workers.boards.session import BoardSession, LostBoard, connected
from workers.build import with_packed_weight
from workers.measure import Calls, sample
from workers.messages import Json, MeasureBatch, ReferenceKernels, Samples, result_to_json
from workers.reference import speed_of, timed_chains, timed_copy


def measure(link: Json, batch: Json) -> Iterator[Json]:
    """Yield the `Samples` of the only candidate of a `MeasureBatch`, or its `Failure`; an entry point in a child."""
    request = MeasureBatch.from_json(batch)
    inputs = drawn(request)
    try:
        with connected(Link.from_json(link)) as session:
            yield result_to_json(_measured(session, request, inputs))
    except LostBoard as error:
        yield result_to_json(Failure(Stage.RUN, FailureKind.DEVICE_LOST, str(error)))


def drawn(batch: MeasureBatch) -> list[Array]:
    """Return the inputs. They are made on the host's cores, and so not while a timing is taken there."""
    hold = host_lock.SharedHold()
    try:
        return draw(batch.args, [False] * len(batch.args), "normal", 0)
    finally:
        hold.close()


def _measured(session: BoardSession, batch: MeasureBatch, inputs: list[Array]) -> Samples | Failure:
    [candidate] = batch.candidates
    try:
        module = session.load(candidate.artifact)
        arguments = to_device(inputs, session.device)
        packed = with_packed_weight(module, candidate.artifact, arguments, session.device)
        mean = Calls(module, session.device, packed).mean
        return Samples(tuple(sample(lambda: mean(1), mean, candidate.cutoff)))
    except Exception as error:
        return session.failure(error, Stage.RUN)


def check(link: Json, kernels: Json) -> Iterator[Json]:
    """Yield the `DeviceSpeed` by the multiply-adds alone; an entry point in a child."""
    built = ReferenceKernels.from_json(kernels)
    with connected(Link.from_json(link)) as session:
        yield speed_of(timed_chains(built, session.device, session.load), built.flop).to_json()


def peaks(link: Json, kernels: Json) -> Iterator[Json]:
    """Yield the `DeviceSpeed` with the copy's rate; an entry point in a child."""
    built = ReferenceKernels.from_json(kernels)
    with connected(Link.from_json(link)) as session:
        run = timed_chains(built, session.device, session.load)
        copy = timed_copy(built, session.device, session.load)
        yield speed_of(run, built.flop, copy).to_json()
