"""A failure in a child is the user's (422) on what was submitted, and the service's (5xx) on what is stored."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loopwright.codegen.rules import prior
from loopwright.codegen.serialization import module_to_json
from service.api import sandbox
from service.api.sandbox import Sandbox
from service.problems import ProblemError
from tests.support import faults, rule_programs
from tests.support.faults import SECRET
from tests.support.served_api import served
from tuner.inspection.answers import RecordLine
from workers.child import child_calls
from workers.child.warm_child import ChildCrashed, WarmChild
from workers.walls.levels import Policy

Call = Callable[[Sandbox], Any]

SUBMITTED: dict[str, Call] = {
    "PARSE": lambda box: box.parse(
        format="tvmscript",
        data="x",
        target_json="{}",
        shapes=None,
        space=None,
        exact_math=False,
        math="fp32",
        unproven=False,
    ),
    "MATCH": lambda box: box.match("llvm", ["{}"]),
    "READ": lambda box: box.read("", ""),
    "ASSEMBLY": lambda box: box.assembly(module_json="{}", trace_json=None, target_json="{}"),
}
STORED: dict[str, Call] = {
    "SCRIPTS": lambda box: box.scripts(module_json="{}", trace_json=None, target_json="{}"),
    "DECISIONS": lambda box: box.decisions(module_json="{}", traces=[], target_json="{}", latencies=[]),
    "EXPORT": lambda box: box.export({"w": "{}"}, [RecordLine("w", None, [1.0], "{}")], 0),
    "APPLY": lambda box: box.apply(module_json="{}", target_json="{}", traces={}, shapes=None),
}
KINDS = {
    "PARSE": "invalid-module",
    "MATCH": "invalid-target",
    "READ": "invalid-archive",
    "ASSEMBLY": "not-compiled",
}


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])
        made = Sandbox(1, Policy.OFF)  # behind walls a function cannot kill its warm child
    made.start()
    yield made
    made.close()


@pytest.fixture
def problem_of(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ProblemError]:
    """The problem that a call answers with if its function in the child fails in a certain way."""

    def problem(name: str, fault: Callable[..., object]) -> ProblemError:
        call = (SUBMITTED | STORED)[name]
        monkeypatch.setattr(sandbox, name, child_calls.Call[Any](faults.__name__, fault.__name__, Any))
        with pytest.raises(ProblemError) as raised:
            call(box)
        assert SECRET not in raised.value.detail
        assert "Traceback" not in raised.value.detail
        return raised.value

    return problem


def test_decisions_of_a_trace_that_names_an_intrinsic_are_tabulated(box: Sandbox) -> None:
    """The child has registered none."""
    mod = rule_programs.softmax(4, 64)
    trace = next(prior.choices(mod, rule_programs.TARGET))
    assert any(step[0] == "Tensorize" for step in trace[0])
    table = box.decisions(
        module_json=module_to_json(mod),
        traces=[json.dumps(trace)],
        target_json=str(rule_programs.TARGET),
        latencies=[1.0],
    )
    assert table.columns


@pytest.mark.parametrize("name", SUBMITTED)
def test_a_refusal_is_handed_on_in_its_own_words(problem_of: Any, name: str) -> None:
    problem = problem_of(name, faults.refuse)
    assert (problem.status, problem.kind) == (422, "invalid-module")
    assert problem.detail == 'symbolic shape; say shapes={"n": 128}'


@pytest.mark.parametrize("name", SUBMITTED)
@pytest.mark.parametrize("fault", [faults.raise_value_error, faults.crash])
def test_what_tvm_cannot_take_is_the_users(problem_of: Any, name: str, fault: Callable[..., object]) -> None:
    problem = problem_of(name, fault)
    assert (problem.status, problem.kind) == (422, KINDS[name])
    assert "signal 11" in problem.detail or "ValueError" in problem.detail


def test_tvms_reason_is_in_the_answer(problem_of: Any) -> None:
    assert problem_of("PARSE", faults.raise_value_error).detail.endswith("the loop is not affine")


@pytest.mark.parametrize("name", SUBMITTED)
def test_what_needs_too_much_memory_is_the_users(problem_of: Any, name: str) -> None:
    problem = problem_of(name, faults.run_out_of_memory)
    assert (problem.status, problem.kind) == (422, "too-expensive")
    assert "4 GiB" in problem.detail


def test_a_submission_that_takes_too_long_is_to_be_smaller(problem_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.2)
    problem = problem_of("PARSE", faults.hang)
    assert (problem.status, problem.kind) == (422, "too-expensive")
    assert "submit fewer functions" in problem.detail


@pytest.mark.parametrize("name", SUBMITTED)
def test_an_exception_that_no_input_explains_is_the_services(problem_of: Any, name: str) -> None:
    assert problem_of(name, faults.raise_import_error).status == 500


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("fault", [faults.raise_value_error, faults.crash, faults.run_out_of_memory])
def test_a_failure_on_stored_data_is_the_services(
    problem_of: Any, caplog: pytest.LogCaptureFixture, name: str, fault: Callable[..., object]
) -> None:
    with caplog.at_level(logging.ERROR):
        problem = problem_of(name, fault)
    assert (problem.status, problem.kind) == (500, "service-fault")
    assert "fault of the service" in problem.detail
    (record,) = caplog.records
    reference = problem.detail.rstrip(".").rpartition(" ")[2]
    assert reference in record.getMessage()
    if fault is not faults.run_out_of_memory:
        assert SECRET in record.getMessage()


def test_a_view_that_takes_too_long_says_which(problem_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.2)
    problem = problem_of("SCRIPTS", faults.hang)
    assert (problem.status, problem.kind) == (500, "too-slow")
    assert problem.detail.startswith("Rendering the program took over")


def test_shapes_that_do_not_fit_a_stored_module_are_the_users(problem_of: Any) -> None:
    assert problem_of("APPLY", faults.refuse).status == 422
    assert problem_of("SCRIPTS", faults.refuse).status == 500


@pytest.mark.parametrize("name", ["PARSE", "SCRIPTS"])
def test_a_killed_child_is_nobodys_and_the_next_call_has_a_new_one(problem_of: Any, name: str) -> None:
    problem = problem_of(name, faults.kill_the_warm_child)
    assert (problem.status, problem.kind) == (503, "interrupted")
    assert problem_of(name, faults.raise_import_error).status == 500


def test_many_functions_are_read_in_parts(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that others have their turn between."""
    monkeypatch.setattr(sandbox, "DIGESTS", child_calls.Call[Any](faults.__name__, faults.count.__name__, Any))
    monkeypatch.setattr(sandbox, "FUNCTIONS_A_CALL", 3)
    assert box.digests(list("abcde")) == ["a of 3", "b of 3", "c of 3", "d of 2", "e of 2"]
    assert box.digests([]) == []


def test_a_call_that_would_wait_too_long_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that wait hold the threads that answer all requests."""
    monkeypatch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])
    monkeypatch.setattr(sandbox, "MATCH", child_calls.Call[Any](faults.__name__, faults.hang.__name__, Any))
    monkeypatch.setattr(sandbox, "WAITING", 2)
    monkeypatch.setattr(sandbox, "WAIT_SECONDS", 0.5)
    monkeypatch.setattr(sandbox, "SECONDS", 4.0)
    box = Sandbox(1, Policy.PREFER)
    box.start()
    try:
        with ThreadPoolExecutor(6) as pool:
            calls = [pool.submit(box.match, "llvm", ["{}"]) for _ in range(6)]
            problems = [call.exception() for call in calls]
    finally:
        box.close()
    assert all(isinstance(problem, ProblemError) for problem in problems)
    found = sorted(problem.kind for problem in problems if isinstance(problem, ProblemError))
    assert found == ["busy"] * 5 + ["too-expensive"]
    busy = next(problem for problem in problems if isinstance(problem, ProblemError) and problem.kind == "busy")
    assert (busy.status, busy.headers) == (503, {"Retry-After": "2"})


def test_reads_are_answered_while_the_children_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To import TVM takes most of a minute on a busy machine."""
    goes_on, starting, start = threading.Event(), threading.Event(), WarmChild.start

    def held_up(child: WarmChild) -> None:
        starting.set()
        goes_on.wait(60)
        start(child)

    monkeypatch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])
    monkeypatch.setattr(WarmChild, "start", held_up)
    try:
        with served(tmp_path) as api:
            assert starting.wait(30)
            assert api.http.get("/healthz").status_code == 200
            assert api.http.get("/api/v1/jobs").json()["items"] == []
            goes_on.set()
    finally:
        goes_on.set()


def test_a_child_that_does_not_start_is_started_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])
    monkeypatch.setattr(sandbox, "DIGESTS", child_calls.Call[Any](faults.__name__, faults.count.__name__, Any))
    failed = threading.Event()

    def fail(child: WarmChild) -> None:
        failed.set()
        raise ChildCrashed(None, "the warm child did not start")

    monkeypatch.setattr(WarmChild, "start", fail)
    box = Sandbox(1, Policy.PREFER)
    box.start()
    try:
        assert failed.wait(30)
        assert box.digests(["a"]) == ["a of 1"]
    finally:
        box.close()
