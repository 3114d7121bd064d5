"""What code that escaped from a tensor program would try: generators that a fork of a warm child runs.

Each yields "done" if it could, or the name of the error that stopped it.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import os
import resource
import signal
import socket
import stat
import subprocess
import termios
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.device.runner import Action, Runner
from workers.entry import Confine

_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE_ATTACH = 16
_CLONE_NEWUSER = 0x10000000
_CLONE = 56  # of x86-64
_PR_SET_NAME = 15
_PR_SCHED_CORE = 62
_F_SETSIG = 10


def _checked(result: int) -> None:
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _read(path: str) -> None:
    Path(path).read_bytes()


def _write(path: str) -> None:
    Path(path).write_text("planted")


def _append(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"planted")


def _chmod_open(path: str) -> None:
    """What can be read can be opened, and the mode of an open file is its owner's to change."""
    with open(path, "rb") as file:
        os.fchmod(file.fileno(), 0o777)


def _date_open(path: str) -> None:
    with open(path, "rb") as file:
        os.utime(file.fileno(), (0, 0))


def _connect(host: str, port: int) -> None:
    socket.create_connection((host, port), 5).close()


def _connect_by_name(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(path)


def _start_cuda() -> None:
    """What CUDA does before the first program runs, besides opening devices: no attack."""
    with _sequence_socket() as made:
        made.bind(f"\0cuda-uvmfd-{os.getpid()}")
        made.listen()
    Path("/proc/devices").read_bytes()
    ready = threading.Event()
    one = threading.Thread(target=ready.wait)
    one.start()
    try:
        Path(f"/proc/self/task/{one.native_id}/comm").write_text("cuda-EvtHandlr")
    finally:
        ready.set()


def _sequence_socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _accept() -> None:
    with _sequence_socket() as made:
        made.bind(f"\0of-{os.getpid()}")
        made.listen()
        made.setblocking(False)
        made.accept()


def _connect_in_sequence(name: str) -> None:
    with _sequence_socket() as made:
        made.connect(name)


def _thread() -> None:
    """What programs do, and may do."""
    one = threading.Thread(target=lambda: None)
    one.start()
    one.join()


def _fork() -> None:
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _send_signal(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


def _own_limits() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))


def _of_pipe(command: int, value: int) -> None:
    reading, _ = os.pipe()
    fcntl.fcntl(reading, command, value)


ATTACKS: dict[str, Any] = {
    "read": _read,
    "write": _write,
    "append": _append,
    "list": os.listdir,
    "chmod": lambda path: os.chmod(path, 0o777),
    "chmod an open file": _chmod_open,
    "date an open file": _date_open,
    "truncate": lambda path: os.truncate(path, 0),
    "unlink": os.unlink,
    "connect": _connect,
    "connect by name": _connect_by_name,
    "connect in sequence": _connect_in_sequence,
    "accept": _accept,
    "socket": lambda family, kind: socket.socket(family, kind).close(),
    "start CUDA": _start_cuda,
    "fork": _fork,
    "thread": _thread,
    "program": lambda: subprocess.run(["/bin/true"], check=True),
    "signal": _send_signal,
    "signal the parent": lambda: _send_signal(os.getppid()),
    "signal all": lambda: os.kill(-1, signal.SIGCONT),
    "own signals": lambda: os.kill(os.getpid(), signal.SIGCONT),
    "own name": lambda: _checked(_LIBC.prctl(_PR_SET_NAME, b"program", 0, 0, 0)),
    "own limits": _own_limits,
    "own descriptor": lambda: _of_pipe(fcntl.F_SETFD, fcntl.FD_CLOEXEC),
    "owner of a pipe": lambda: _of_pipe(fcntl.F_SETOWN, os.getppid()),
    "signal of a pipe": lambda: _of_pipe(_F_SETSIG, signal.SIGKILL),
    "type into a terminal": lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"),
    "shared core": lambda: _checked(_LIBC.prctl(_PR_SCHED_CORE, 1, 0, 0, 0)),
    "namespace by clone": lambda: _checked(_LIBC.syscall(_CLONE, _CLONE_NEWUSER, 0, 0, 0, 0)),
    "trace": lambda pid: _checked(_LIBC.ptrace(_PTRACE_ATTACH, pid, 0, 0)),
    "namespace": lambda: _checked(_LIBC.unshare(_CLONE_NEWUSER)),
    "limits of the parent": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (16, 16)),
    "cores": lambda pid: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
    "class": lambda pid: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
    "cores of the parent": lambda: os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))}),
    "class of the parent": lambda: os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)),
}


def attack(name: str, arguments: list[Any]) -> Iterator[str]:
    try:
        ATTACKS[name](*arguments)
    except (OSError, subprocess.SubprocessError) as error:
        yield type(error).__name__
    else:
        yield "done"


def call_all(numbers: list[int]) -> Iterator[list[int]]:
    """Yield how each system call with these numbers failed (errno), and 0 for one that did not.

    Their arguments are wrong for every call, so that one that is let through does nothing.
    """
    failed = []
    for number in numbers:
        result = _LIBC.syscall(number, *(ctypes.c_long(-1),) * 6)
        failed.append(ctypes.get_errno() if result == -1 else 0)
    yield failed


@dataclass
class _Told:
    """No programs: what a runner says at its start."""

    name: str

    def do(self, action: Action, position: int, number: int) -> float:
        return 0.0


def attack_in_runner(name: str, arguments: list[Any], confine: Confine) -> Iterator[str]:
    """See `attack`; it is done by a program that another process measures."""
    with Runner(lambda: _Told(next(attack(name, arguments))), confine) as runner:
        yield runner.name


def write_to_the_judge(confine: Confine) -> Iterator[str]:
    """As a program tries to change the memory of the process that measures it."""

    def made() -> _Told:
        try:
            with open(f"/proc/{os.getppid()}/mem", "r+b"):
                return _Told("open")
        except OSError as error:
            return _Told(type(error).__name__)

    with Runner(made, confine) as runner:
        yield runner.name


def speak_in_runner(frames: list[str], confine: Confine) -> Iterator[str]:
    """See `speak`: a program that is measured tries it."""
    with Runner(lambda: _Told(next(speak(frames))), confine) as runner:
        yield runner.name


def fill(count: int, size: int) -> Iterator[str]:
    """Write ``count`` files of ``size`` bytes into the only folder that can be written."""
    block = bytes(2**20)
    try:
        for number in range(count):
            with open(f"file-{number}", "wb") as file:
                for _ in range(size // len(block)):
                    file.write(block)
    except OSError as error:
        yield str(error.strerror)
    else:
        yield "done"


def leave(folders: list[str]) -> Iterator[list[str]]:
    """Leave a file in the own folder, and wherever else it goes; yield what was found from before."""
    found = []
    for folder in (".", *folders):
        try:
            found += [name for name in os.listdir(folder) if name == "left"]
            Path(folder, "left").write_text("for the next one")
        except OSError:
            continue
    yield found


def text_of(path: str) -> Iterator[str]:
    """Yield what a file says, or the error."""
    try:
        yield Path(path).read_text(errors="replace")
    except OSError as error:
        yield type(error).__name__


def command_lines() -> Iterator[list[str]]:
    """Yield the command lines of all processes that it can see."""
    seen = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            seen.append(entry.read_text(errors="replace"))
        except OSError:
            continue
    yield seen


def rights() -> Iterator[dict[str, str]]:
    """Yield the fields of /proc/self/status."""
    lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    yield {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def speak(frames: list[str]) -> Iterator[str]:
    """Write to the warm child in place of the program that does it for functions: all at once, from base64."""
    pipes = [number for number in range(3, 100) if _is_pipe(number)]
    data = b"".join(map(base64.b64decode, frames))
    while data:
        data = data[os.write(pipes[-1], data) :]
    os._exit(0)
    yield ""


def speak_in_session(frames: list[str], questions: Iterator[str]) -> Iterator[str]:
    """See `speak`; it speaks once it is asked, and stays."""
    next(questions)
    yield from speak(frames)


def _is_pipe(descriptor: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode) and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_WRONLY != 0
    except OSError:
        return False


def scheduling() -> Iterator[list[Any]]:
    """Yield the own scheduling class and cores."""
    yield [os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))]


def own_environment() -> Iterator[dict[str, str]]:
    yield dict(os.environ)


def listing(path: str) -> Iterator[list[str]]:
    yield os.listdir(path)


def stop() -> Iterator[None]:
    """Stop itself, for good."""
    os.kill(os.getpid(), signal.SIGSTOP)
    yield None
