"""Which builds share a fork, and what becomes of the others when one ends it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from loopwright.codegen.kinds import FailureKind
from tuner.codec import encode
from tuner.types import Failure
from workers.child.build_fork import MOST, BuildFork
from workers.child.warm_child import ChildCrashed, ChildError, ChildRaised, ChildTimeout, Session, WarmChild, nothing
from workers.messages import Artifact, ArtifactFormat, BuildRequest

CANDIDATE = BuildRequest("module", "trace", '{"kind": "llvm"}')
BUILT = Artifact(ArtifactFormat.LLVM_IR, "code")


class PlayedChild:
    """``forks`` are the traces that each fork was asked for; ``ended`` counts the sessions that are over."""

    def __init__(self) -> None:
        self.forks: list[list[str | None]] = []
        self.ended = 0
        self.errors: dict[str, list[ChildError]] = {}
        """By trace: what the next attempts to build it end with."""

    def call(self, function: str, arguments: Any, seconds: float, meanwhile: Callable[[], None]) -> Any:
        self.forks.append([])
        return self._ask(arguments[0], seconds, meanwhile)

    @contextlib.contextmanager
    def session(self, function: str, arguments: Any) -> Iterator[Session]:
        self.forks.append([])
        yield Session(self._ask)
        self.ended += 1

    def _ask(self, request: BuildRequest, seconds: float, meanwhile: Callable[[], None] = nothing) -> Any:
        self.forks[-1].append(request.trace_json)
        if errors := self.errors.get(request.trace_json or ""):
            raise errors.pop(0)
        return encode(BUILT)


@pytest.fixture
def child() -> PlayedChild:
    return PlayedChild()


@pytest.fixture
def fork(child: PlayedChild) -> BuildFork:
    return BuildFork(cast("WarmChild", child))


def built(fork: BuildFork, *traces: str, caller: str = "job") -> list[Artifact | Failure]:
    return [fork.build(replace(CANDIDATE, trace_json=trace), caller, 9.0) for trace in traces]


def test_candidates_of_a_function_share_forks_of_limited_length(child: PlayedChild, fork: BuildFork) -> None:
    names = [f"t{number}" for number in range(MOST + 2)]
    assert built(fork, *names) == [BUILT] * len(names)
    assert child.forks == [names[:MOST], names[MOST:]]
    assert child.ended == 1


def test_nothing_of_another_caller_or_function_shares_a_fork(child: PlayedChild, fork: BuildFork) -> None:
    built(fork, "a")
    built(fork, "b", caller="another job")
    fork.build(replace(CANDIDATE, module_json="another"), "another job", 9.0)
    fork.build(replace(CANDIDATE, module_json="another", target_json='{"kind": "llvm", "mcpu": "x"}'), "another job", 9)
    assert child.forks == [["a"], ["b"], ["trace"], ["trace"]]
    assert child.ended == 3


@pytest.mark.parametrize(
    "alone",
    [
        replace(CANDIDATE, trace_json=None),
        replace(CANDIDATE, exact_math=True),
        replace(CANDIDATE, target_json='{"kind": "cuda"}'),
    ],
    ids=["baseline", "reference", "for a GPU"],
)
def test_what_candidates_are_compared_with_has_a_fork_of_its_own(
    child: PlayedChild, fork: BuildFork, alone: BuildRequest
) -> None:
    built(fork, "a")
    assert fork.build(alone, "job", 9.0) == BUILT
    built(fork, "b")
    assert child.forks == [["a"], [alone.trace_json], ["b"]]


def test_a_crash_after_others_is_tried_again_alone(child: PlayedChild, fork: BuildFork) -> None:
    crash = ChildCrashed(signal.SIGSEGV, "")
    child.errors = {"b": [crash], "d": [crash, crash], "e": [crash]}
    answers = built(fork, "a", "b", "c", "d", "e", "f")
    kinds = [answer.kind if isinstance(answer, Failure) else None for answer in answers]
    assert kinds == [None, None, None, FailureKind.CRASH, FailureKind.CRASH, None]
    assert child.forks == [["a", "b"], ["b"], ["c", "d"], ["d"], ["e"], ["f"]]


def test_a_refused_trace_and_a_long_build_are_not_tried_again(child: PlayedChild, fork: BuildFork) -> None:
    child.errors = {"b": [ChildRaised("ValueError", "no block")], "d": [ChildTimeout("no answer within 9 s")]}
    answers = built(fork, "a", "b", "c", "d")
    kinds = [answer.kind if isinstance(answer, Failure) else None for answer in answers]
    assert kinds == [None, FailureKind.COMPILE, None, FailureKind.TIMEOUT]
    assert child.forks == [["a", "b"], ["c", "d"]]


def test_a_fork_that_nobody_needs_ends(child: PlayedChild, fork: BuildFork) -> None:
    built(fork, "a")
    fork.rest(600.0, 60.0)
    assert child.ended == 0
    fork.rest(600.0, 0.0)
    assert child.ended == 1
    built(fork, "b")
    assert child.forks == [["a"], ["b"]]
