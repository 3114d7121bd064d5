"""What a hostile program does in the process where it is measured: the process that measures it stays out of reach."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security import attacks
from tests.security.test_security_frames import is_honest, said
from workers.child.warm_child import ChildRaised, WarmChild
from workers.walls.levels import Level, obstacles

ATTACKS = attacks.__name__


@pytest.fixture(scope="module", params=[Level.NAMESPACES, Level.LANDLOCK])
def child(request: pytest.FixtureRequest) -> Iterator[WarmChild]:
    """As a measurer's."""
    if (reason := obstacles()[request.param]) is not None:
        pytest.skip(f"{request.param}: {reason}")
    made = WarmChild([ATTACKS], level=request.param)
    yield made
    made.close()


def tried(child: WarmChild, name: str) -> str:
    return str(child.call(f"{ATTACKS}:attack_in_runner", {"name": name, "arguments": []}, 30))


def test_a_program_computes_and_reaches_nobody(child: WarmChild) -> None:
    assert tried(child, "thread") == "done"
    for name in (
        "fork",
        "program",
        "namespace",
        "signal the parent",
        "limits of the parent",
        "cores of the parent",
        "class of the parent",
    ):
        assert tried(child, name) == "PermissionError", name
    assert child.call(f"{ATTACKS}:write_to_the_judge", {}, 30) == "PermissionError"


def test_a_program_has_no_pipe_to_those_who_ask(child: WarmChild) -> None:
    """What it writes to the only one that it has is no answer, and ends its own measurement."""
    forged = said({"value": "forged"}, {"done": True}) * 9
    with pytest.raises(ChildRaised, match="impossible answer"):
        child.call(f"{ATTACKS}:speak_in_runner", {"frames": forged}, 30)
    assert is_honest(child)
