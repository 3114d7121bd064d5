"""The warm child: a program of its own that imports TVM once and forks a fresh process for each request.

Run as ``python -m workers.child.program REQUESTS REPLIES ENCLOSURE MODULE…``; it speaks frames (see
`workers.child.frames`) on the two descriptors, and its forks go behind the walls of the enclosure (see
`workers.walls.enclosure`). A request names a generator function (``module:function``, see `workers.entry`) and its
arguments; every value the function yields goes back as a frame and starts the deadline anew (see `workers.clock`).
The function of a session gets an iterator of questions as well, and yields one answer to each; its deadline counts,
and it shares the host's lock, only while it works on a question.

A crash, a hang or a kill ends the fork, not this program. When the parent exits, this program kills its fork and exits,
too.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import psutil

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.versions import check_versions
from tuner.codec import decode, encode
from workers.child.frames import MAX_VALUES, Closed, FrameReader, Garbled, readable, write_frame
from workers.clock import WAIT_SECONDS, Clock
from workers.device.runner import RunnerDied
from workers.entry import confines, decoded
from workers.walls.enclosure import Enclosure

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_STDERR_TAIL = 2000
_KEYS = ("value", "raised", "message", "clock", "done")
"""What a fork may say."""
_RESERVE_BYTES = 64 * 2**20
"""Not tuned."""
_LOCK_POLL_SECONDS = 0.004
"""Between two looks whether a timing waits: a timing takes tens of milliseconds, a look microseconds."""


def main() -> None:
    requests, replies = int(sys.argv[1]), int(sys.argv[2])
    # Where these are installed TVM imports the one and XGBoost the other, which costs seconds and hundreds of megabytes
    # for nothing.
    for name in ("torch", "sklearn"):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    enclosure = decode(Enclosure, json.loads(sys.argv[3]))
    try:
        check_versions()
        enter = enclosure.prepare()
        for name in sys.argv[4:]:
            importlib.import_module(name)
        # Processes that a fork started and left behind become children of this program, which kills them.
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        write_frame(replies, {"ready": os.getpid()})
        parent = _Parent(requests, replies)
        while True:
            _serve(parent.next_request(), parent, enter)
    except (Closed, BrokenPipeError):
        return  # the parent has exited
    except UnsupportedVersion as error:
        sys.exit(str(error))


class _Parent:
    """The two pipes to and from the parent."""

    def __init__(self, requests: int, replies: int) -> None:
        self.requests = requests
        self.number = 0
        """Of the request that is served: each reply has it."""
        self._replies = replies
        self._reader = FrameReader(requests)

    def reply(self, frame: dict[str, Any]) -> None:
        write_frame(self._replies, {**frame, "number": self.number})

    def next_request(self) -> dict[str, Any]:
        """Wait for the next request; what was meant for a fork that has ended is passed over. Raises Closed."""
        while True:
            while (frame := self._reader.pop()) is not None:
                if "function" in frame:
                    self.number = frame["number"]
                    return dict(frame)
            self._reader.feed()

    def word(self) -> dict[str, Any] | None:
        """Return what the parent has for the fork that runs, if anything is there. Raises Closed."""
        return self._reader.pop()

    def feed(self) -> None:
        """Take in what the parent sends, once `requests` is readable. Raises Closed if the parent has exited."""
        self._reader.feed()

    def close(self) -> None:
        os.close(self.requests)
        os.close(self._replies)


def _serve(request: dict[str, Any], parent: _Parent, enter: Callable[[str], None]) -> None:
    """Fork, forward what the fork yields, and report how it ended."""
    out, into = os.pipe()
    questions, ask = os.pipe() if request["session"] else (None, None)
    share = (lambda: _share_host_lock(parent)) if request["busy"] else (lambda: None)
    hold = None if request["session"] else share()
    pid = os.fork()
    if pid == 0:
        parent.close()
        os.close(out)
        if ask is not None:
            os.close(ask)
        _run(request, questions, into, enter)
    os.close(into)
    if questions is not None:
        os.close(questions)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)  # the fork does it, too: whoever is first, the group exists before it is stopped
    fork = _Fork(pid, out, ask, parent, share, hold)
    try:
        ending = fork.forward(math.inf if request["session"] else request["deadline"])
    finally:
        status = _kill(pid)
        fork.close()  # not before: to free a fork's memory takes milliseconds of a core
        tail = _tail(os.path.join(request["scratch"], "stderr"))
        # On disk the parent removes it, too, unless it has exited.
        shutil.rmtree(request["writable"], ignore_errors=True)
    if ending == "closed":
        code = os.waitstatus_to_exitcode(status)
        parent.reply({"end": "crash", "signal": -code if code < 0 else None, "stderr": tail})
    else:
        parent.reply({"end": ending, "stderr": tail})


def _share_host_lock(parent: _Parent) -> host_lock.SharedHold:
    parent.reply({"clock": Clock.STOP})
    hold = host_lock.SharedHold()
    parent.reply({"clock": Clock.START})
    return hold


class _Fork:
    """A fork at work. One that shares the host's lock is stopped while a timing is taken.

    Args:
        out: where the fork's frames come from.
        ask: where the questions of a session go to; None for a single call.
        share: shares the host's lock, or does nothing; ``hold`` is what it returned for a single call.
    """

    def __init__(
        self,
        pid: int,
        out: int,
        ask: int | None,
        parent: _Parent,
        share: Callable[[], host_lock.SharedHold | None],
        hold: host_lock.SharedHold | None,
    ) -> None:
        self._pid = pid
        self._out = out
        self._ask = ask
        self._parent = parent
        self._share = share
        self._hold = hold
        self._is_asked = False
        """A question of the session has no answer yet."""
        self._deadline = self._until = math.inf
        """Seconds for each frame, and when the time of the next one is over."""
        self._reader = FrameReader(out, MAX_VALUES)

    def forward(self, deadline: float) -> str:
        """Forward frames; return how the fork ended: "done", "timeout", "stopped" (by the parent), "closed", "garbled".

        Raises Closed if the parent has exited.
        """
        self._give(deadline)
        while not self._is_stopped():
            ready = self._ready()
            if not ready and self._is_late():
                return "timeout"
            ending = self._pass_on() if self._out in ready else None
            if ending is not None:
                return ending
        return "stopped"

    def _give(self, deadline: float) -> None:
        """Give the fork so many seconds for each frame, from now on."""
        self._deadline = deadline
        self._until = time.monotonic() + deadline

    def _is_stopped(self) -> bool:
        """Take up what the parent has said, and send questions to the fork. Return whether the parent said to stop."""
        while (word := self._parent.word()) is not None:
            if word.get("stop") == self._parent.number:
                return True
            if self._ask is not None and "question" in word:
                self._hold = self._share()
                self._is_asked = True
                write_frame(self._ask, {"question": word["question"]})
                self._give(word["deadline"])
        return False

    def _ready(self) -> list[int]:
        """Wait for the fork and the parent, within the fork's time; return which of them has sent something."""
        seconds = min(max(0.0, self._until - time.monotonic()), WAIT_SECONDS)
        if self._hold is not None:
            seconds = min(seconds, _LOCK_POLL_SECONDS)
        ready = readable([self._out, self._parent.requests], seconds)
        if self._parent.requests in ready:
            self._parent.feed()
        return ready

    def _is_late(self) -> bool:
        """Return whether the fork's time is over. Else stop it while timings wait, which is not of its time."""
        if time.monotonic() >= self._until:
            return True
        if self._hold is not None and self._hold.timing_waits():
            self._until += self._stop_for_timing(self._hold)
        return False

    def _pass_on(self) -> str | None:
        """Pass what the fork has sent to the parent. Return how the fork ended; None if it is at work."""
        try:
            frames = self._read()
        except Garbled:
            return "garbled"
        except Closed:
            return "closed"
        for frame in frames:
            if "done" in frame:
                return "done"
            if self._ask is not None and "value" in frame:
                if not self._is_asked:
                    return "garbled"
                self._is_asked = False
                self._let_go()
                self._deadline = math.inf
            self._parent.reply(frame)
            stops = frame.get("clock") == Clock.STOP
            self._until = time.monotonic() + (WAIT_SECONDS if stops else self._deadline)
        return None

    def _read(self) -> list[dict[str, Any]]:
        """Return the frames that the fork sent, without keys by which this program itself speaks to the parent."""
        self._reader.feed()
        frames = []
        while (frame := self._reader.pop()) is not None:
            frames.append({key: frame[key] for key in _KEYS if key in frame})
        return frames

    def close(self) -> None:
        self._let_go()
        os.close(self._out)
        if self._ask is not None:
            os.close(self._ask)

    def _let_go(self) -> None:
        if self._hold is not None:
            self._hold.close()
            self._hold = None

    def _stop_for_timing(self, hold: host_lock.SharedHold) -> float:
        """Stop the fork's process group until the waiting timings are taken; return how many seconds that took."""
        started = time.monotonic()
        os.killpg(self._pid, signal.SIGSTOP)
        self._parent.reply({"clock": Clock.STOP})
        hold.pause()
        self._parent.reply({"clock": Clock.START})
        os.killpg(self._pid, signal.SIGCONT)
        return time.monotonic() - started


def _kill(pid: int) -> int:
    """Kill and reap the fork and all that it started, in any group or session; return the fork's wait status."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # the fork may not have created its group yet
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ChildProcessError):
        while True:
            left, _ = os.waitpid(-1, os.WNOHANG)
            if left == 0:
                for process in psutil.Process().children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
                time.sleep(0.001)
    return status


def _run(request: dict[str, Any], questions: int | None, into: int, enter: Callable[[str], None]) -> None:
    """Set the fork's limits, put up its walls by ``enter``, and run the function. Never returns."""
    scratch = request["scratch"]
    try:
        os.setpgid(0, 0)
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _limit(request["memory_bytes"])
        os.makedirs(scratch, exist_ok=True)
        os.chdir(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        stderr = os.open("stderr", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(stderr, 1)
        os.dup2(stderr, 2)
        module, name = request["function"].split(":")
        try:
            function = getattr(importlib.import_module(module), name)
            arguments = decoded(function, request["arguments"], None if questions is None else _questions(questions))
            if confines(function):
                # Same user or not, what it starts cannot read or write the memory of a process that is not dumpable.
                _LIBC.prctl(_PR_SET_DUMPABLE, 0)
                arguments["confine"] = functools.partial(enter, scratch)
            else:
                enter(scratch)
            for value in function(**arguments):
                write_frame(into, {"clock": value} if isinstance(value, Clock) else {"value": encode(value)})
        except MemoryError:
            _use_reserve(request["memory_bytes"])
            write_frame(into, {"raised": "MemoryError", "message": "out of memory within the child's limit"})
        except RunnerDied as death:
            _die_as(death.status)
        except Exception as error:
            write_frame(into, {"raised": type(error).__name__, "message": str(error)[-4000:]})
        write_frame(into, {"done": True})
    finally:
        os._exit(0)


def _die_as(status: int) -> NoReturn:
    """End this process as its runner has ended: who reads the end looks for what the program did."""
    if status < 0:
        if -status != signal.SIGKILL:  # for which nothing can be set
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _questions(descriptor: int) -> Iterator[Any]:
    """Yield what comes; ends when the session does."""
    reader = FrameReader(descriptor)
    while True:
        while (question := reader.pop()) is None:
            try:
                reader.feed()
            except Closed:
                return
        yield question["question"]


def _limit(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes + _RESERVE_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))


def _use_reserve(memory_bytes: int) -> None:
    """Allow a fork that is out of memory to say so: what filled it may still be referred to."""
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes + _RESERVE_BYTES, memory_bytes + _RESERVE_BYTES))


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _STDERR_TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    # Ctrl-C in a terminal reaches the whole foreground group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
    os._exit(0)  # skip the interpreter's shutdown, because the parent may be waiting
