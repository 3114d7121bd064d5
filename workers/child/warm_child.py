"""The parent's side of a warm child: deadlines, and killing whole process trees."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psutil

from tuner.codec import encode
from workers.child.frames import Closed, FrameReader, readable, write_frame
from workers.child.idle import RESTS
from workers.clock import WAIT_SECONDS, Clock
from workers.error_text import first_line, raised
from workers.walls.enclosure import enclose
from workers.walls.levels import Level
from workers.walls.paths import CHECKOUT

_IMPORTS = {"PYTHONPATH": str(CHECKOUT / "client")}
"""`loopwright.codegen` comes from the same checkout as the child's other modules, installed or not."""
_START_SECONDS = 120.0
"""For the imports: seconds on an idle machine, more on a busy one. Not tuned."""
_GRACE_SECONDS = 10.0
"""The child enforces deadlines itself. After so much more time the child itself counts as stuck. Not tuned."""
_LEAVE_SECONDS = 2.0
"""A child whose pipes were closed kills its fork and removes its files before it exits. Not tuned."""
_MEANWHILE_SECONDS = 0.01
"""Between two calls of what a session's caller does meanwhile. Not tuned."""
_LIBRARIES = ("LD_LIBRARY_PATH", "CUDA_PATH")
_INHERITED = ("PATH", "HOME", *_LIBRARIES)


class Ending(enum.Enum):
    """How a function in a child ended without its answer."""

    TIMEOUT = enum.auto()
    RAISED = enum.auto()
    OUT_OF_MEMORY = enum.auto()
    CRASHED = enum.auto()
    """By a signal that programs raise themselves, or by an exit."""
    KILLED = enum.auto()
    """Its process alone, by SIGKILL from outside: from an operator, or from the kernel when memory is short: it takes
    the process with most of it."""
    MALFORMED = enum.auto()
    """It answered what no such function answers."""
    LOST = enum.auto()
    """The warm child itself was killed from outside, which says nothing about the function."""
    STOPPED = enum.auto()
    """By `WarmChild.stop`."""


class ChildError(Exception):
    """Base of the errors of `WarmChild`: the function has no further value. The only place that tells them apart."""

    @property
    def ending(self) -> Ending:
        match self:
            case ChildTimeout():
                return Ending.TIMEOUT
            case ChildRaised():
                return Ending.OUT_OF_MEMORY if self.kind == "MemoryError" else Ending.RAISED
            case ChildCrashed():
                return Ending.KILLED if self.signal == signal.SIGKILL else Ending.CRASHED
            case ChildMalformed():
                return Ending.MALFORMED
            case ChildStopped():
                return Ending.STOPPED
        return Ending.LOST

    raised: str | None = None
    """The class name of the exception that the function raised."""

    @property
    def details(self) -> str:
        """What became of the function, for the log."""
        match self:
            case ChildRaised():
                return f"{self.kind}: {self}"
            case ChildCrashed():
                return f"{self}: {self.stderr}"
        return str(self)

    @property
    def for_users(self) -> str:
        """What became of the function, without native stacks and paths of this machine."""
        match self:
            case ChildRaised():
                return raised(self.kind, str(self))
            case ChildCrashed():
                return f"{self} {first_line(self.stderr)}".strip()
        return str(self)


class ChildTimeout(ChildError):
    """The function yielded nothing within its deadline and was killed."""


class ChildCrashed(ChildError):
    """The function's process died by ``signal``, or exited without an answer (None)."""

    def __init__(self, signal: int | None, stderr: str) -> None:
        super().__init__(signal, stderr)
        self.signal = signal
        self.stderr = stderr

    def __str__(self) -> str:
        return "exited without an answer" if self.signal is None else f"died by signal {self.signal}"


class ChildLost(ChildError):
    """The warm child itself was killed from outside."""


class ChildStopped(ChildError):
    """The function was stopped by `WarmChild.stop`."""


class ChildMalformed(ChildError):
    """The function answered what no such function answers, or its process did not speak in frames."""


class ChildRaised(ChildError):
    """The function raised; ``kind`` is the exception's class name."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = self.raised = kind


Arguments = Mapping[str, object] | Sequence[object]
"""By name, or in the order of the function's parameters; `tuner.codec` makes them JSON."""
_END: Final = object()
"""In place of a value: the function has yielded its last."""


def nothing() -> None:
    """Done meanwhile by who has nothing to do."""


@dataclass(frozen=True, slots=True)
class Session:
    """A fork that answers questions; see `WarmChild.session`."""

    _ask: Callable[[Any, float, Callable[[], None]], Any]

    def ask(self, question: Any, deadline: float, meanwhile: Callable[[], None] = nothing) -> Any:
        """Return the answer to a question, as JSON. Raises ChildError.

        ``deadline`` is in seconds. ``meanwhile`` is called every few milliseconds until the answer is there; what it
        raises ends the session.
        """
        return self._ask(question, deadline, meanwhile)


class WarmChild:
    """A child process that is kept warm and runs functions in forks. Thread-safe: one request at a time.

    If nobody needs it for long it ends (`workers.child.idle`), and starts again with the next request.

    Args:
        preload: modules that the child imports before it takes requests.
        env: environment variables set on top of a minimal environment (thread counts, say).
        memory_bytes: limit on the data segment of each fork; 0 for none.
        busy: the forks compute without taking timings. They share the host's lock (`loopwright.codegen.host.lock`) and
            are stopped while a timing is taken on the host; their deadline does not count meanwhile.
        level: of the walls around the child (see `workers.walls.levels`).
        programs: the forks may start programs, as a linker.
        devices: the forks may use this machine's GPUs.
        network: the forks may connect to other machines by TCP.
    """

    def __init__(
        self,
        preload: list[str],
        env: dict[str, str] | None = None,
        memory_bytes: int = 0,
        busy: bool = False,
        *,
        level: Level,
        programs: bool = False,
        devices: bool = False,
        network: bool = False,
    ) -> None:
        self._preload = preload
        libraries = [os.environ[name] for name in _LIBRARIES if name in os.environ]
        self._enclosure = enclose(level, preload, libraries, programs=programs, devices=devices, network=network)
        self._env = env or {}
        self._memory_bytes = memory_bytes
        self._busy = busy
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        """Held while pipes are closed or written to, so that `stop` writes into no other file and no other frame."""
        self._number = 0
        """Of the latest request; 0 before the first one."""
        self._ended = True
        self._process: subprocess.Popen[bytes] | None = None
        self._used = time.monotonic()
        """When it was last needed."""
        RESTS.look_after(self)

    def start(self) -> None:
        """Start the child now, so that the first request does not wait for the imports."""
        with self._lock:
            self._ensure_started()

    def call(
        self, function: str, arguments: Arguments, deadline: float, meanwhile: Callable[[], None] = nothing
    ) -> Any:
        """Return the only value that ``function`` yields, as JSON; see `stream` for errors.

        ``meanwhile`` is called every few milliseconds until the value is there; what it raises stops the function.
        """
        values = []
        with self._fork(function, arguments, deadline, session=False):
            try:
                while (value := self._value(deadline, meanwhile)) is not _END:
                    values.append(value)
            finally:
                if not self._ended:
                    self._leave()
        if len(values) != 1:
            raise ChildCrashed(None, f"{function} yielded {len(values)} values instead of one")
        return values[0]

    def stream(self, function: str, arguments: Arguments, deadline: float) -> Iterator[Any]:
        """Run ``module:function`` in a fresh fork and hand on what it yields, as JSON.

        ``deadline`` (seconds) applies to each value. Raises ChildError.
        """
        with self._fork(function, arguments, deadline, session=False):
            while (value := self._value(deadline, nothing)) is not _END:
                yield value

    @contextlib.contextmanager
    def session(self, function: str, arguments: Arguments) -> Iterator[Session]:
        """Run ``module:function`` in a fresh fork that answers questions and keeps its memory until the context ends.

        The function gets an iterator of the questions as ``questions`` besides ``arguments``, and yields one answer to
        each. After an error of `Session.ask` the fork has gone.
        """
        with self._fork(function, arguments, 0.0, session=True):
            try:
                yield Session(self._ask)
            finally:
                if not self._ended:
                    self._leave()

    def stop(self) -> None:
        """Stop the function that runs, if any. May be called from another thread; what it ran raises ChildStopped."""
        with self._opening, contextlib.suppress(BrokenPipeError):
            if self._process is not None:
                write_frame(self._requests, {"stop": self._number})

    @contextlib.contextmanager
    def _fork(self, function: str, arguments: Arguments, deadline: float, *, session: bool) -> Iterator[None]:
        """A fork that runs the function. The child is killed if the context ends before the fork does."""
        with self._lock, self._scratch() as scratch:
            self._ensure_started()
            self._number += 1
            self._ended = False
            request = {
                "number": self._number,
                "session": session,
                "scratch": scratch,
                "writable": self._enclosure.writable(scratch),
                "function": function,
                "arguments": encode(arguments),
                "deadline": deadline,
                "memory_bytes": self._memory_bytes,
                "busy": self._busy,
            }
            try:
                self._send(request)
                yield
            except (Closed, BrokenPipeError) as error:
                raise ChildLost("the warm child itself was killed") from error
            finally:
                self._used = time.monotonic()
                if not self._ended:
                    self._kill()

    def _send(self, value: Any) -> None:
        with self._opening:
            write_frame(self._requests, value)

    def _ask(self, question: Any, deadline: float, meanwhile: Callable[[], None]) -> Any:
        if self._ended:
            raise ChildLost("the session has ended")
        try:
            self._send({"question": encode(question), "deadline": deadline})
            answer = self._value(deadline, meanwhile)
        except (Closed, BrokenPipeError) as error:
            raise ChildLost("the warm child itself was killed") from error
        if answer is _END:
            raise ChildCrashed(None, "the function ended before the session")
        return answer

    def _value(self, deadline: float, meanwhile: Callable[[], None]) -> Any:
        """Return the next value of the fork, or `_END`. Raises what became of the fork."""
        seconds = deadline
        error: ChildRaised | None = None
        while True:
            frame = self._next(seconds + _GRACE_SECONDS, meanwhile)
            seconds = WAIT_SECONDS if frame.get("clock") == Clock.STOP else deadline
            if "value" in frame:
                return frame["value"]
            if "raised" in frame:
                # The fork has not ended yet: a timing may still stop it.
                error = ChildRaised(str(frame["raised"]), str(frame.get("message")))
            if "end" in frame:
                self._ended = True
                if error is not None:
                    raise error
                if frame["end"] == "timeout":
                    raise ChildTimeout(f"no answer within {deadline:g} s")
                if frame["end"] == "crash":
                    raise ChildCrashed(frame["signal"], frame["stderr"])
                if frame["end"] == "stopped":
                    raise ChildStopped("it was stopped")
                if frame["end"] == "garbled":
                    raise ChildMalformed("it gave an impossible answer")
                return _END

    def _leave(self) -> None:
        """End the session's fork, and keep the child where it takes part in that."""
        with contextlib.suppress(ChildTimeout, Closed, BrokenPipeError):
            self._send({"stop": self._number})
            until = time.monotonic() + _LEAVE_SECONDS
            while not self._ended:
                self._ended = "end" in self._next(until - time.monotonic())

    def close(self) -> None:
        with self._lock:
            self._kill()

    def rest(self, seconds: float, unused_seconds: float) -> None:
        """Stop the child if it has not been used for this time, or since its start for the other one."""
        limit = seconds if self._number else unused_seconds
        if time.monotonic() - self._used < limit or not self._lock.acquire(blocking=False):
            return
        try:
            self._kill()
        finally:
            self._lock.release()

    def _scratch(self) -> contextlib.AbstractContextManager[str]:
        """Return the folder for one request."""
        inside = self._enclosure.scratch
        if inside is not None:
            return contextlib.nullcontext(inside)
        # Made here, because the child may be killed at any moment.
        return tempfile.TemporaryDirectory(prefix="loopwright-", ignore_cleanup_errors=True)

    def _ensure_started(self) -> None:
        self._used = time.monotonic()
        if self._process is not None and self._process.poll() is None:
            return
        self._kill()
        child_in, self._requests = os.pipe()
        self._replies, child_out = os.pipe()
        enclosure = self._enclosure
        program = [
            sys.executable,
            "-m",
            "workers.child.program",
            str(child_in),
            str(child_out),
            json.dumps(encode(enclosure)),
        ]
        try:
            self._process = subprocess.Popen(
                enclosure.command([*program, *self._preload], CHECKOUT),
                pass_fds=(child_in, child_out),
                stdin=subprocess.DEVNULL,
                cwd=CHECKOUT,
                env={name: os.environ[name] for name in _INHERITED if name in os.environ} | _IMPORTS | self._env,
                start_new_session=True,
            )
        finally:
            os.close(child_in)
            os.close(child_out)
        self._reader = FrameReader(self._replies)
        try:
            self._next(_START_SECONDS)
        except Closed as error:
            self._kill()
            raise ChildCrashed(None, "the warm child did not start; its message is in the log above") from error

    def _next(self, seconds: float, meanwhile: Callable[[], None] = nothing) -> Any:
        """Return the next frame; ``meanwhile`` is called every few milliseconds until then."""
        until = time.monotonic() + seconds
        pause = _MEANWHILE_SECONDS if meanwhile is not nothing else seconds
        while (frame := self._reader.pop()) is None or frame.get("number", self._number) != self._number:
            if frame is not None:
                continue  # of a request that has ended
            left = max(0.0, until - time.monotonic())
            if readable([self._replies], min(left, pause)):
                self._reader.feed()
            elif left == 0.0:
                self._kill()
                raise ChildTimeout(f"the child did not answer within {seconds:g} s")
            else:
                meanwhile()
        return frame

    def _kill(self) -> None:
        """End the child and everything it started, and reap it."""
        if self._process is None:
            return
        self._ended = True
        with self._opening:
            process, self._process = self._process, None
            os.close(self._requests)
            os.close(self._replies)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_SECONDS)
        if process.returncode != 0:
            _kill_family(process.pid)
            process.wait()


def _kill_family(leader: int) -> None:
    """Kill the child that leads a session, its descendants, and the session's members that its death orphaned."""
    family = []
    with contextlib.suppress(psutil.NoSuchProcess):
        child = psutil.Process(leader)
        family = [child, *child.children(recursive=True)]
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(process.pid) == leader:
                family.append(process)
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
