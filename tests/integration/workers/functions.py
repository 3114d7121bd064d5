"""What the tests of the warm child have it run. A child imports this module by its dotted name."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from tuner.ports import Raced
from tuner.types import DeviceState
from workers.clock import Clock
from workers.device.device_state import state_reader
from workers.entry import entry
from workers.messages import BuiltRace, Device, MeasureBatch, MeasureProgress, RaceAnswer, Samples


def values(items: list[Any], pause: float = 0.0) -> Iterator[Any]:
    for item in items:
        time.sleep(pause)
        yield item


def waits(seconds: float) -> Iterator[Any]:
    """Stops the clock for a while."""
    yield Clock.STOP
    time.sleep(seconds)
    yield Clock.START
    yield "waited"


def where() -> Iterator[dict[str, Any]]:
    """Names its process, its parent and its directory, and stays."""
    yield {"pid": os.getpid(), "parent": os.getppid(), "directory": os.getcwd()}
    time.sleep(600)


def spin() -> Iterator[Any]:
    while True:
        pass
    yield


def deaf() -> Iterator[Any]:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    yield from where()


def family() -> Iterator[list[int]]:
    """Starts a child, one in a session of its own, and one whose parent has left; names them and stays."""
    plain = subprocess.Popen(["sleep", "600"])
    apart = subprocess.Popen(["sleep", "600"], start_new_session=True)
    orphan = "setsid sleep 600 >&2 & echo $!"
    answer = subprocess.run(["sh", "-c", orphan], stdout=subprocess.PIPE, check=True)
    yield [plain.pid, apart.pid, int(answer.stdout)]
    time.sleep(600)


def segfault() -> Iterator[Any]:
    ctypes.string_at(0)
    yield


def leave() -> Iterator[Any]:
    print("going", file=sys.stderr, flush=True)
    os._exit(3)
    yield


class _SlowToGo(Exception):
    """Keeps its process for half a second between what it says and its end."""

    def __del__(self) -> None:
        time.sleep(0.5)


def fail_and_linger() -> Iterator[object]:
    yield "soon"
    raise _SlowToGo


def fail(message: str) -> Iterator[Any]:
    raise KeyError(message)
    yield


def shout() -> Iterator[Any]:
    os.write(2, b"x" * 50_000_000)
    os.write(2, b"the last words")
    os.abort()
    yield


def allocate(size: int) -> Iterator[int]:
    yield len(bytearray(size))


def kill_self() -> Iterator[Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield


def unspeakable() -> Iterator[Any]:
    yield object()


@entry
def gpu_states(devices: list[Device]) -> Iterator[DeviceState | None]:
    for device in devices:
        yield state_reader(device)()


def too_long(size: int) -> Iterator[str]:
    yield "x" * size


def answers(questions: Iterator[Any], start: int = 0) -> Iterator[Any]:
    """Adds up what it is told, for as long as the session lasts; words are done instead."""
    total = start
    for question in questions:
        if question == "spin":
            while True:
                pass
        if question == "crash":
            ctypes.string_at(0)
        if question == "raise":
            raise LookupError("unknown")
        if question == "leave":
            return
        if question == "where":
            yield os.getpid()
            continue
        if question == "wait":
            yield Clock.STOP
            time.sleep(1.5)
            yield Clock.START
            yield "waited"
            continue
        total += question
        yield total


def product_of_pytorch() -> Iterator[dict[str, Any]]:
    """Looks for a call of PyTorch that computes a product, and runs it."""
    import numpy as np
    import tvm

    from workers.device import gpu_library

    hidden = sys.modules["torch"] is None
    left, right = (np.random.default_rng(seed).standard_normal((8, 8), dtype="float32") for seed in (0, 1))
    product, arrays = left @ right, [left, right, np.zeros((8, 8), "float32")]
    torch = gpu_library.loaded()
    call = torch and gpu_library.find(torch, arrays, [False, False, True], [left, right, product], tvm.cpu(0))
    yield {"hidden": hidden, "error": float(np.abs(call().numpy() - product).max()) if call else None}


def forge(frames: list[str]) -> Iterator[str]:
    """Write frames to the parent past the child's own code."""
    for descriptor in range(3, 256):
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode) and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_WRONLY:
                for frame in frames:
                    os.write(descriptor, struct.pack("!I", len(frame)) + frame.encode())
    yield "answer"


@entry
def measure(device: Device, batch: MeasureBatch) -> Iterator[MeasureProgress]:
    """Speak of a candidate that nobody sent."""
    yield MeasureProgress(len(batch.candidates), Samples((1e-3,)))


@entry
def race(device: Device, race: BuiltRace) -> Iterator[RaceAnswer]:
    """Give one result, whatever the number of contenders."""
    yield RaceAnswer((Raced((1e-3,), 0.0, 0.0),))
