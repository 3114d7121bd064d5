"""Timing of programs on a board over RPC. Runs in forks of a warm child; each has a connection of its own.

The board's clock counts: TVM's time evaluator runs on the board, so that the network is no part of a timing. What a
program raises is its own failure if the board still answers afterwards, and otherwise the board counts as lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopwright.codegen.arrays import Array
from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import FailureKind, Stage
from tuner.types import Failure
from workers.board_messages import Link
from workers.boards.session import BoardSession, LostBoard, connected
from workers.device.arguments import draw, to_device
from workers.device.build import with_packed_weight
from workers.device.measure import sample
from workers.device.programs import Calls
from workers.device.reference import speed_of, timed_chains, timed_copy
from workers.entry import entry
from workers.messages import DeviceSpeed, MeasureBatch, ReferenceKernels, Samples


@entry
def measure(link: Link, batch: MeasureBatch) -> Iterator[Samples | Failure]:
    """Yield the samples of the batch's only candidate."""
    inputs = drawn(batch)
    try:
        with connected(link) as session:
            yield _measured(session, batch, inputs)
    except LostBoard as error:
        yield Failure(Stage.RUN, FailureKind.DEVICE_LOST, str(error))


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
        module = session.load(candidate.code)
        arguments = to_device(inputs, session.device)
        packed = with_packed_weight(module, candidate.code, arguments, session.device)
        mean = Calls(module, session.device, packed).mean
        return Samples(tuple(sample(lambda number: mean(max(1, number)), candidate.cutoff)))
    except Exception as error:
        return session.failure(error, Stage.RUN)


@entry
def check(link: Link, kernels: ReferenceKernels) -> Iterator[DeviceSpeed]:
    """Yield the speed by the multiply-adds alone."""
    with connected(link) as session:
        yield speed_of(timed_chains(kernels, session.device, session.load), kernels.flop)


@entry
def peaks(link: Link, kernels: ReferenceKernels) -> Iterator[DeviceSpeed]:
    """Yield the speed with the copy's rate."""
    with connected(link) as session:
        run = timed_chains(kernels, session.device, session.load)
        copy = timed_copy(kernels, session.device, session.load)
        yield speed_of(run, kernels.flop, copy)
