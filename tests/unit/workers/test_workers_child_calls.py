"""What a child's error says about the program that it worked on."""

from __future__ import annotations

import signal

import pytest

from loopwright.codegen.kinds import FailureKind, Stage
from workers.child.child_calls import failure_of
from workers.child.warm_child import ChildCrashed, ChildError, ChildLost, ChildRaised, ChildTimeout


@pytest.mark.parametrize(
    ("error", "stage", "kind", "message"),
    [
        (ChildTimeout("no answer within 2 s"), Stage.RUN, FailureKind.TIMEOUT, "no answer within 2 s"),
        (ChildRaised("ValueError", "no block"), Stage.BUILD, FailureKind.COMPILE, "ValueError: no block"),
        (ChildRaised("ValueError", "no block"), Stage.CERTIFY, FailureKind.CRASH, "ValueError: no block"),
        (ChildCrashed(signal.SIGSEGV, "bad access"), Stage.RUN, FailureKind.CRASH, "died by signal 11 bad access"),
        (ChildCrashed(None, ""), Stage.RUN, FailureKind.CRASH, "exited without an answer"),
        (ChildCrashed(signal.SIGKILL, "Killed"), Stage.RUN, FailureKind.KILLED, "its process was killed"),
        (ChildLost("the warm child itself was killed"), Stage.RUN, FailureKind.DEVICE_LOST, "the warm child itself"),
    ],
    ids=lambda value: str(value),
)
def test_a_childs_error_says_what_became_of_the_program(
    error: ChildError, stage: Stage, kind: FailureKind, message: str
) -> None:
    failure = failure_of(error, stage)
    assert (failure.stage, failure.kind) == (stage, kind)
    assert failure.message.startswith(message)
