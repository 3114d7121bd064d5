"""The warm child: a program of its own that imports TVM once and forks a fresh process for each request.

Run as ``python -m workers.child REQUESTS REPLIES ENCLOSURE MODULE…``; it speaks frames (see `workers.frames`) on the
two descriptors, and its forks go behind the walls of the enclosure (see `workers.walls.enclosure`). A request names a
generator function (``module:function``) and its keyword arguments; every value the
function yields goes back as a frame and starts the deadline anew (see `workers.clock`). A crash, a hang or a kill
ends the fork, not this program. When the parent exits, this program kills its fork and exits, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import psutil

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.versions import check_versions
from workers import host_lock
from workers.clock import WAIT_SECONDS, Clock
from workers.frames import Closed, FrameReader, write_frame
from workers.walls.enclosure import Enclosure

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_STDERR_TAIL = 2000
_LOCK_POLL_SECONDS = 0.004
"""Between two looks whether a timing waits: a timing takes tens of milliseconds, a look microseconds."""


def main() -> None:
    requests, replies = int(sys.argv[1]), int(sys.argv[2])
    # Where PyTorch is installed TVM imports it, which costs a second and a hundred megabytes for nothing.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    enclosure = Enclosure.from_json(sys.argv[3])
    try:
        check_versions()
        enter = enclosure.prepare()
        for name in sys.argv[4:]:
            importlib.import_module(name)
        # Processes that a fork started and left behind become children of this program, which kills them.
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        write_frame(replies, {"ready": os.getpid()})
        reader = FrameReader(requests)
        while True:
            while (request := reader.pop()) is None:
                reader.feed()
            _serve(request, requests, replies, enter)
    except (Closed, BrokenPipeError):
        return  # the parent has exited
    except UnsupportedVersion as error:
        sys.exit(str(error))


def _serve(request: dict[str, Any], requests: int, replies: int, enter: Callable[[str], None]) -> None:
    """Fork, forward what the fork yields, and report how it ended."""
    scratch = request["scratch"]
    out, into = os.pipe()
    hold = _share_host_lock(replies) if request["busy"] else None
    pid = os.fork()
    if pid == 0:
        os.close(out)
        os.close(requests)
        os.close(replies)
        _run(request, into, enter)
    os.close(into)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)  # the fork does it, too: whoever is first, the group exists before it is stopped
    fork = FrameReader(out)
    try:
        ending = _forward(fork, out, requests, replies, request["deadline"], pid, hold)
    finally:
        status = _kill(pid)
        if hold is not None:
            hold.close()  # not before: to free a fork's memory takes milliseconds of a core
        os.close(out)
        tail = _tail(os.path.join(scratch, "stderr"))
        # On disk the parent removes it, too, unless it has exited.
        shutil.rmtree(request["writable"], ignore_errors=True)
    if ending == "closed":
        code = os.waitstatus_to_exitcode(status)
        write_frame(replies, {"end": "crash", "signal": -code if code < 0 else None, "stderr": tail})
    else:
        write_frame(replies, {"end": ending, "stderr": tail})


def _share_host_lock(replies: int) -> host_lock.SharedHold:
    write_frame(replies, {"clock": Clock.STOP})
    hold = host_lock.SharedHold()
    write_frame(replies, {"clock": Clock.START})
    return hold


def _forward(
    fork: FrameReader,
    out: int,
    requests: int,
    replies: int,
    deadline: float,
    pid: int,
    hold: host_lock.SharedHold | None,
) -> str:
    """Forward the fork's frames; return how it ended: "done", "timeout" or "closed".

    A fork that shares the host's lock is stopped while a timing is taken. Raises Closed if the parent has exited.
    """
    until = time.monotonic() + deadline
    while True:
        seconds = max(0.0, until - time.monotonic())
        if hold is not None:
            seconds = min(seconds, _LOCK_POLL_SECONDS)
        readable, _, _ = select.select([out, requests], [], [], seconds)
        if requests in readable:
            # The parent sends nothing while a request runs: readable means that the parent has exited.
            raise Closed
        if not readable:
            if time.monotonic() >= until:
                return "timeout"
            if hold is not None and hold.timing_waits():
                until += _stop_for_timing(pid, hold, replies)
            continue
        try:
            fork.feed()
        except Closed:
            return "closed"
        while (frame := fork.pop()) is not None:
            if "done" in frame:
                return "done"
            write_frame(replies, frame)
            until = time.monotonic() + (WAIT_SECONDS if frame.get("clock") == Clock.STOP else deadline)


def _stop_for_timing(pid: int, hold: host_lock.SharedHold, replies: int) -> float:
    """Stop the fork's process group until the waiting timings are taken; return how many seconds that took."""
    started = time.monotonic()
    os.killpg(pid, signal.SIGSTOP)
    write_frame(replies, {"clock": Clock.STOP})
    hold.pause()
    write_frame(replies, {"clock": Clock.START})
    os.killpg(pid, signal.SIGCONT)
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


def _run(request: dict[str, Any], into: int, enter: Callable[[str], None]) -> None:
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
        enter(scratch)
        module, function = request["function"].split(":")
        try:
            for value in getattr(importlib.import_module(module), function)(**request["arguments"]):
                write_frame(into, {"clock": value} if isinstance(value, Clock) else {"value": value})
        except MemoryError:
            write_frame(into, {"raised": "MemoryError", "message": "out of memory within the child's limit"})
        except Exception as error:
            write_frame(into, {"raised": type(error).__name__, "message": str(error)[-4000:]})
        write_frame(into, {"done": True})
    finally:
        os._exit(0)


def _limit(memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))


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
