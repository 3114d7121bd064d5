"""The process in which programs run, as the process that judges them sees it.

Who measures is not who is measured: the judge draws the inputs, holds the clock and compares results, and never loads
what was built from a submission. A runner is forked from it, goes behind walls, and loads and calls programs as it is
told. It reads commands from one pipe, answers each by a record on another, and shares nothing else with the judge but
a `Mailbox`. Outside of its commands it is stopped, with all of its threads: programs of other runners have the cores
for themselves, and what is in the mailbox stays as it is while it is read.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import math
import mmap
import os
import secrets
import signal
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn, Protocol, Self

import numpy as np

from loopwright.codegen.arrays import Array, numpy_dtype
from tuner.types import TensorInfo
from workers.error_text import raised

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_ALIGNMENT = 64
"""Bytes: what TVM and vector instructions like best."""
_COMMAND = struct.Struct("!QBII")
_REPLY = struct.Struct("!QBdH")
"""Both begin with the same random number, so that no answer can be given before it is asked for."""
_LONGEST_TEXT = 4096

SLACK_SECONDS = 6e-4
"""How much longer a command may take than a program says that its calls took: to wake the runner and its threads, to
make an evaluator, and to answer. On two cores that took 0.5 ms for programs on one thread, 0.9 ms for those on two."""
_SLACK = 0.05
"""The same as a share of the time. Not tuned."""
_ATTEMPTS = 3
"""After so many, a time that the judge's clock does not bear out is the judge's: a runner may have lost its core."""
FINE_SECONDS = 1e-3
"""A call that is longer is timed alone, by the clock that Python has."""


class Action(enum.IntEnum):
    """What `Runner`'s methods of these names say."""

    LOAD = 0
    RUN = 1
    KEEP = 2
    BIND = 3
    TIME = 4
    """Return the mean seconds of so many calls, after one that does not count; 0: those of one call."""


class Programs(Protocol):
    """What a runner holds: programs by their positions."""

    @property
    def name(self) -> str: ...

    def do(self, action: Action, position: int, number: int) -> float:
        """Obey a command, and return the seconds per call of a timing, otherwise 0."""


class ProgramError(Exception):
    """A program raised an exception in its runner; the message is for users."""


class RunnerDied(Exception):
    """The runner has ended by itself.

    Attributes:
        status: as of `os.waitstatus_to_exitcode`; a negative number is a signal's.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"died by signal {-status}" if status < 0 else f"ended with status {status}")
        self.status = status


class RunnerLied(Exception):
    """The runner answered what is no answer."""

    def __init__(self) -> None:
        super().__init__("its process gave an impossible answer")


class Mailbox:
    """Memory for the arguments of a function, which a judge shares with the runners that it starts afterwards."""

    def __init__(self, args: Sequence[TensorInfo]) -> None:
        sizes = [math.prod(info.shape) * numpy_dtype(info.dtype).itemsize for info in args]
        places = np.cumsum([0, *(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)])
        memory = np.frombuffer(mmap.mmap(-1, max(int(places[-1]), 1)), np.uint8)
        self.arrays: list[Array] = [
            memory[start : start + size].view(numpy_dtype(info.dtype)).reshape(info.shape)
            for info, size, start in zip(args, sizes, map(int, places), strict=False)
        ]

    def write(self, arrays: Sequence[Array]) -> None:
        for place, array in zip(self.arrays, arrays, strict=True):
            place[...] = array

    def read(self) -> list[Array]:
        """Return copies."""
        return [array.copy() for array in self.arrays]


class Runner:
    """A process that holds programs. Use it as a context: at the end it is killed.

    Its methods raise ProgramError, RunnerDied and RunnerLied; so does making one, for what ``make`` raises.

    Args:
        make: makes the programs, in the new process.
        confine: puts up walls around the new process, for good.
    """

    def __init__(self, make: Callable[[], Programs], confine: Callable[[], None]) -> None:
        commands, self._commands = os.pipe()
        self._replies, replies = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(make, confine, commands, replies)
        os.close(commands)
        os.close(replies)
        self._status: int | None = None
        try:
            self.name = self._answer(0)[1]
            """What it calls its programs."""
            self._stop()
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def load(self, position: int) -> None:
        """Load a program, so that it can be called."""
        self._ask(Action.LOAD, position)

    def run(self, position: int) -> None:
        """Call a program on what is in the mailbox; what it made of that is there afterwards."""
        self._ask(Action.RUN, position)

    def keep(self, position: int = 0) -> None:
        """Keep what is in the mailbox of a program as arguments of the timed calls of its function."""
        self._ask(Action.KEEP, position)

    def bind(self, position: int) -> None:
        """Give a program the arguments that were kept, its weight packed."""
        self._ask(Action.BIND, position)

    def seconds(self, position: int, number: int) -> float:
        """Return the mean seconds of ``number`` calls after one that does not count; of 0, those of one cold call.

        The runner's clock counts, which is finer, as far as the judge's bears it out; otherwise the judge's does, with
        all that came between. Nothing is gained by claiming too little.
        """
        if number and self._timed(position, 0) > FINE_SECONDS and number == 1:
            number = 0
        seconds = self._timed(position, number)
        self._stop()
        return seconds

    def _timed(self, position: int, number: int) -> float:
        calls = number + 1  # the evaluator makes one more than it counts
        least = math.inf
        for _ in range(_ATTEMPTS):
            started = time.perf_counter()
            claimed = self._tell(Action.TIME, position, number)[0]
            passed = time.perf_counter() - started
            if calls * claimed >= passed - SLACK_SECONDS - _SLACK * passed:
                return claimed
            least = min(least, passed / calls)
        return least

    def _ask(self, action: Action, position: int) -> None:
        self._tell(action, position, 0)
        self._stop()

    def _tell(self, action: Action, position: int, number: int) -> tuple[float, str]:
        """Return the answer to a command; the runner goes on."""
        key = secrets.randbits(64)
        os.kill(self._pid, signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):  # it has died, and so there is no answer
            os.write(self._commands, _COMMAND.pack(key, action, position, number))
        return self._answer(key)

    def _answer(self, key: int) -> tuple[float, str]:
        answered, failed, seconds, length = _REPLY.unpack(self._read(_REPLY.size))
        if answered != key or length > _LONGEST_TEXT or failed > 1 or not 0 <= seconds < math.inf:
            raise RunnerLied
        text = self._read(length).decode(errors="replace")
        if failed:
            self._stop()
            raise ProgramError(text)
        return seconds, text

    def _stop(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        _, status = os.waitpid(self._pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise self._death(status)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = os.read(self._replies, size - len(data))
            if not part:
                # A process that has closed its pipe and lives on is waited for until this one's deadline.
                raise self._death(os.waitpid(self._pid, 0)[1])
            data += part
        return data

    def _death(self, status: int) -> RunnerDied:
        self._status = os.waitstatus_to_exitcode(status)
        return RunnerDied(self._status)

    def _close(self) -> None:
        os.close(self._commands)
        os.close(self._replies)
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _serve(make: Callable[[], Programs], confine: Callable[[], None], commands: int, replies: int) -> NoReturn:
    """Obey commands until the judge is gone."""
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _close_all_but(commands, replies)
        confine()
        # In a thread of its own: if this one has launched a parallel loop before the fork, it waits for threads that
        # are not here.
        thread = threading.Thread(target=_obey, args=(make, commands, replies))
        thread.start()
        thread.join()
    finally:
        os._exit(0)


def _close_all_but(*descriptors: int) -> None:
    """Close what the judge had open, other runners' pipes and its own to its parent among them."""
    # Not by `os.closerange` up to the limit, which is a billion in some containers.
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor not in descriptors:
            with contextlib.suppress(OSError):  # that of the folder is closed already
                os.close(descriptor)


def _obey(make: Callable[[], Programs], commands: int, replies: int) -> None:
    made: list[Programs] = []

    def start() -> tuple[float, str]:
        made.append(make())
        return 0.0, made[0].name

    def obey(action: int, position: int, number: int) -> tuple[float, str]:
        return made[0].do(Action(action), position, number), ""

    _reply(replies, 0, start)
    while command := os.read(commands, _COMMAND.size):
        key, *what = _COMMAND.unpack(command)
        _reply(replies, key, partial(obey, *what))


def _reply(replies: int, key: int, work: Callable[[], tuple[float, str]]) -> None:
    try:
        (seconds, text), failed = work(), False
    except Exception as error:
        seconds, text, failed = 0.0, raised(type(error).__name__, str(error)), True
    data = text.encode(errors="replace")[:_LONGEST_TEXT]
    os.write(replies, _REPLY.pack(key, failed, seconds, len(data)) + data)
