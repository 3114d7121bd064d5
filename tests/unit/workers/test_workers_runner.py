"""The process that runs programs, and what a program in it can make of its own evidence."""

from __future__ import annotations

import os
import signal
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from tuner.types import TensorInfo
from workers.device.runner import Action, Mailbox, ProgramError, Runner, RunnerDied, RunnerLied

ARGS = (TensorInfo((3,), "float32"), TensorInfo((2, 2), "bfloat16"), TensorInfo((), "bool"), TensorInfo((0,), "int8"))


@dataclass
class Played:
    """Programs that do as a test says."""

    work: Callable[[Action, int, int], float]
    name: str = "played"

    def do(self, action: Action, position: int, number: int) -> float:
        return self.work(action, position, number)


def started(work: Callable[[Action, int, int], float]) -> Runner:
    return Runner(lambda: Played(work), lambda: None)


def nothing(action: Action, position: int, number: int) -> float:
    return 0.0


def replies() -> int:
    """Return the descriptor on which this runner answers its judge: the last that is open."""
    return max(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}"))


def test_arrays_of_all_kinds_go_through_the_mailbox() -> None:
    mailbox = Mailbox(ARGS)
    arrays = [np.ones(array.shape, array.dtype) for array in mailbox.arrays]
    assert [str(array.dtype) for array in arrays] == ["float32", "bfloat16", "bool", "int8"]

    def doubles(action: Action, position: int, number: int) -> float:
        assert all((array == 1).all() for array in mailbox.arrays)
        mailbox.write([np.add(array, array) for array in mailbox.arrays])
        return 0.0

    with started(doubles) as runner:
        mailbox.write(arrays)
        runner.run(0)
        results = mailbox.read()
    mailbox.write(arrays)  # what was read is a copy
    assert [array.tolist() for array in results] == [[2.0] * 3, [[2.0] * 2] * 2, True, []]
    assert all(array.ctypes.data % 64 == 0 for array in mailbox.arrays)


def test_what_programs_raise_is_told_and_the_runner_goes_on() -> None:
    def fails_first(action: Action, position: int, number: int) -> float:
        if position == 0:
            raise ValueError("no such program")
        return 0.0

    with started(fails_first) as runner:
        with pytest.raises(ProgramError, match=r"^ValueError: no such program$"):
            runner.load(0)
        runner.load(1)

    def unmade() -> Played:
        raise RuntimeError("cannot be made")

    with pytest.raises(ProgramError, match=r"^RuntimeError: cannot be made$"):
        Runner(unmade, lambda: None)


def test_walls_are_up_before_programs_are_made(tmp_path: Path) -> None:
    order = tmp_path / "order"

    def made() -> Played:
        return Played(nothing, order.read_text())

    with Runner(made, lambda: print("confined", end="", file=order.open("w"), flush=True)) as runner:
        assert runner.name == "confined"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_the_signal_that_ends_a_runner_is_told(number: signal.Signals) -> None:
    def dies(action: Action, position: int, calls: int) -> float:
        signal.raise_signal(number)
        time.sleep(60)
        return 0.0

    with started(dies) as runner, pytest.raises(RunnerDied) as death:
        runner.run(0)
    assert death.value.status == -number


def test_a_runner_is_gone_after_its_use() -> None:
    before = set(psutil.Process().children())
    with started(nothing) as runner:
        [process] = set(psutil.Process().children()) - before
        runner.load(0)
    assert not process.is_running()
    with pytest.raises(RuntimeError, match="by the test"), started(nothing):
        raise RuntimeError("by the test")
    assert set(psutil.Process().children()) == before


def test_outside_of_its_commands_a_runner_is_stopped() -> None:
    """With all threads that a program has left behind."""
    mailbox = Mailbox(ARGS[:1])

    def counts(action: Action, position: int, number: int) -> float:
        def on_and_on() -> None:
            while True:
                np.add(mailbox.arrays[0], 1, out=mailbox.arrays[0])

        threading.Thread(target=on_and_on, daemon=True).start()
        return 0.0

    with started(counts) as runner:
        runner.run(0)
        seen = mailbox.read()
        time.sleep(0.05)
        assert (mailbox.read()[0] == seen[0]).all()


def test_a_time_that_the_judges_clock_bears_out_is_the_runners() -> None:
    def sleeps(action: Action, position: int, number: int) -> float:
        started = time.perf_counter()
        time.sleep(0.01)
        return (time.perf_counter() - started) / (number + 1)

    with started(sleeps) as runner:
        assert 0.01 <= runner.seconds(0, 0) < 10
        assert 0.01 / 5 <= runner.seconds(0, 4) < 10


@pytest.mark.parametrize("number", [0, 1, 4])
def test_who_claims_too_little_gets_the_judges_time(number: int) -> None:
    def claims(action: Action, position: int, number: int) -> float:
        time.sleep(0.01)
        return 1e-9

    with started(claims) as runner:
        assert runner.seconds(0, number) >= 0.01 / (number + 1)


def test_a_core_that_was_lost_for_a_moment_costs_no_candidate_its_time() -> None:
    calls = []

    def waits_once(action: Action, position: int, number: int) -> float:
        calls.append(number)
        time.sleep(0.05)
        return 1e-5 if len(calls) == 1 else 10.0

    with started(waits_once) as runner:
        assert runner.seconds(0, 0) == 10.0


def record(key: int, failed: int, seconds: float, length: int) -> bytes:
    return struct.pack("!QBdH", key, failed, seconds, length)


@pytest.mark.parametrize(
    "answer",
    [
        record(7, 0, float("nan"), 0),
        record(7, 0, float("inf"), 0),
        record(7, 0, -1.0, 0),
        record(7, 2, 1.0, 0),
        record(7, 0, 1.0, 65535),
        record(8, 0, 1.0, 0),
    ],
    ids=["nan", "infinite", "negative", "neither", "long", "of another question"],
)
def test_what_is_no_answer_ends_the_work(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def lies(action: Action, position: int, number: int) -> float:
        os.write(replies(), answer)
        time.sleep(60)
        return 0.0

    monkeypatch.setattr("workers.device.runner.secrets.randbits", lambda bits: 7)
    with started(lies) as runner, pytest.raises(RunnerLied):
        runner.run(0)


def test_nobody_answers_before_the_question() -> None:
    """As a program would that has done the work of a timing before: an instant answer would bear out any time."""

    def answers_ahead(action: Action, position: int, number: int) -> float:
        os.write(replies(), record(0, 0, 1e-9, 0) * 2)
        return 0.0

    with started(answers_ahead) as runner, pytest.raises(RunnerLied):
        runner.seconds(0, 0)


def test_a_runner_has_no_descriptor_of_its_judge_or_of_other_runners() -> None:
    """Besides its two pipes: one of the judge's leads to those who asked for the judgement."""

    def counts(action: Action, position: int, number: int) -> float:
        return float(len(os.listdir("/proc/self/fd")))

    with open(os.devnull) as kept, started(nothing), started(counts) as second:
        assert kept.fileno() > 2
        # The three standard ones, the pipes, and the one with which the folder is read.
        assert second.seconds(0, 0) == 6.0
