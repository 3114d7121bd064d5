"""A whole model, built and timed as one program in this process."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import nn

from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from loopwright.frontends import to_payload
from loopwright.model import Model
from tests.support.played_fleet import TARGET
from tests.support.programs import product
from tuner.inspection.answers import Submission
from tuner.inspection.submission import parse
from tuner.space.builtin import builtin_space
from workers.clock import Clock
from workers.device import whole_model
from workers.messages import Device, ModelProgram, ModelTimes

HOST = Device("llvm", 0)
SYMBOLIC = """\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        return R.nn.relu(x)
"""


class Mixed(nn.Module):
    """Indices, a lookup in a table, and two products."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.first, self.second = nn.Embedding(50, 16), nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(self.table(ids))))


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)


@pytest.fixture(scope="module")
def submission() -> Submission:
    payload = to_payload(Model(Mixed().eval(), example_inputs=(torch.zeros(4, dtype=torch.int64),)))
    [parsed] = parse(payload.format, payload.data, TARGET, None, None)
    return parsed


def timed(module_json: str, traces: Mapping[str, str | None], untuned_build_seconds: float = 0.0) -> ModelTimes:
    program = ModelProgram(module_json, TARGET, dict(traces), untuned_build_seconds)
    *_, last = whole_model.time_model(HOST, program, lambda: None)
    assert isinstance(last, ModelTimes)
    return last


def traces(submission: Submission) -> dict[str, str | None]:
    """A schedule of the built-in space for each function that has one."""
    found: dict[str, str | None] = {}
    for task in submission.tasks:
        space = builtin_space(module_from_json(task.workload.module_json), target_from(TARGET), 1)
        schedules = (space.replay(trace, 1) for trace in space.traces)
        found[task.workload.hash] = next((trace_to_json(each.trace) for each in schedules if each is not None), None)
    return found


def test_a_model_is_timed_with_and_without_schedules(submission: Submission) -> None:
    assert len(submission.tasks) >= 2
    chosen = traces(submission)
    assert any(chosen.values())
    for given in ({}, chosen):
        found = timed(submission.module_json, given)
        assert found.reason is None
        assert whole_model.LEAST_LOOPS <= len(found.run_secs) <= whole_model.MOST_LOOPS
        assert all(0 < seconds < 1 for seconds in found.run_secs)
        assert found.untuned_secs == ()
    both = timed(submission.module_json, chosen, 600.0)
    assert whole_model.LEAST_LOOPS <= len(both.untuned_secs) <= len(both.run_secs)
    assert timed(submission.module_json, chosen, 1e-9).untuned_secs == ()


@pytest.mark.parametrize(
    ("call", "number", "loops"), [(2e-6, 10_000, 25), (0.004, 5, 25), (0.05, 3, 7), (2.0, 3, 5)], ids=str
)
def test_a_model_is_timed_in_loops_and_its_first_call_does_not_count(call: float, number: int, loops: int) -> None:
    calls: list[int] = []

    def seconds(number: int) -> float:
        calls.append(number)
        return call if number else 1.2 * call  # as after a rest

    found = whole_model.in_a_loop(seconds)
    assert found == [call] * len(found)
    assert calls[0] == 0
    assert calls[-1] == pytest.approx(number, abs=1)
    assert len(found) == pytest.approx(loops, abs=1)


@pytest.mark.parametrize(
    ("call", "untuned_call", "calls", "loops"),
    [(2e-6, 1e-4, 200, 25), (0.004, 0.2, 0, 15), (0.004, 30.0, 0, 5), (2.0, 0.5, 0, 5)],
    ids=str,
)
def test_two_models_take_turns(call: float, untuned_call: float, calls: int, loops: int) -> None:
    made: list[tuple[str, int]] = []

    def tuned(number: int) -> float:
        made.append(("tuned", number))
        return call

    def untuned(number: int) -> float:
        made.append(("untuned", number))
        return untuned_call

    turns = whole_model.in_turns(tuned, untuned)
    while True:
        try:
            assert next(turns) is Clock.START
        except StopIteration as end:
            first, second = end.value
            break
    assert (set(first), set(second), len(second)) == ({call}, {untuned_call}, loops)
    number = next(number for name, number in reversed(made) if name == "tuned" and number)
    turn = [("tuned", 0), ("tuned", number), *([("untuned", 0)] if calls else []), ("untuned", calls)]
    rest = [("tuned", 0), ("tuned", number)] * (len(first) - loops)
    assert made[-len(turn) * loops - len(rest) :] == turn * loops + rest


def test_interruptions_of_some_loops_do_not_change_the_median() -> None:
    interrupted = itertools.cycle([1.0, 30.0, 1.0])
    found = whole_model.in_a_loop(lambda number: 1e-5 * (next(interrupted) if number > 1 else 1.0))
    assert statistics.median(found) == 1e-5


def test_the_schedules_that_it_is_given_are_those_that_run(submission: Submission) -> None:
    broken = dict.fromkeys(traces(submission), '[[["NoSuchInstruction", [], [], []]], []]')
    with pytest.raises(Exception, match="NoSuchInstruction"):
        timed(submission.module_json, broken)


@pytest.mark.parametrize(
    ("script", "reason"), [(product(8), "it has no Relax function main"), (SYMBOLIC, "it has symbolic extents")]
)
def test_what_cannot_be_timed_says_why(script: str, reason: str) -> None:
    from loopwright.codegen.serialization import module_to_json
    from tuner.inspection.submission import read_module

    assert timed(module_to_json(read_module("tvmscript", script)), {}) == ModelTimes((), reason)


def test_weights_that_are_too_large_are_not_drawn(submission: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_model, "MAX_WEIGHT_BYTES", 2**10)
    monkeypatch.setattr(whole_model, "_weight", lambda *_: pytest.fail("drawn"))
    found = timed(submission.module_json, {})
    assert (found.run_secs, found.reason) == ((), "its weights take 0 MiB, over 0 MiB")
