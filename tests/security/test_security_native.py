"""Native code planted in a measured program, past the guard: it is contained, and its failure has a name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import tvm

from loopwright.codegen.host.threads import environment
from loopwright.codegen.kinds import FailureKind, Stage
from tests.support import workloads
from tests.support.cases import first
from tuner.types import Failure, TensorInfo
from workers.child import child_calls
from workers.child.warm_child import ChildCrashed, ChildError, ChildTimeout, WarmChild
from workers.device import build
from workers.messages import (
    Artifact,
    Candidate,
    Device,
    MeasureBatch,
    Samples,
)
from workers.walls.levels import Level, obstacles

_PROGRAM = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("C"):
            v = T.axis.spatial(4, i)
            C[v] = A[v]
            T.evaluate({call})
"""
_CPU = Device("llvm", 0)
_ARGS = (TensorInfo((4,), "float32"), TensorInfo((4,), "float32"))


@pytest.fixture(scope="module", autouse=True)
def _apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("apart"))
        yield


def _measuring(level: Level) -> WarmChild:
    """Return a measurer's child."""
    return WarmChild([child_calls.MEASURE.module], environment(1), 4 * 2**30, level=level)


@pytest.fixture(scope="module", params=[Level.NAMESPACES, Level.LANDLOCK])
def child(request: pytest.FixtureRequest) -> Iterator[WarmChild]:
    if (reason := obstacles()[request.param]) is not None:
        pytest.skip(f"{request.param}: {reason}")
    with contextlib.closing(_measuring(request.param)) as made:
        yield made


@pytest.fixture(scope="module")
def unwalled() -> Iterator[WarmChild]:
    with contextlib.closing(_measuring(Level.NONE)) as made:
        yield made


def planted(call: str) -> Artifact:
    """Return a program that makes a call of the C library."""
    mod = tvm.IRModule({"main": tvm.script.from_source(_PROGRAM.format(call=call))})
    return build.artifact(mod, tvm.target.Target(workloads.LLVM))


def measured(child: WarmChild, artifact: Artifact, seconds: float = 30.0) -> Samples | Failure:
    batch = MeasureBatch(_ARGS, (Candidate("planted", artifact),))
    progress = list(child_calls.MEASURE.stream(child, _CPU, batch, seconds=seconds))
    (found,) = [each.result for each in progress if each.result is not None]
    return found


def effects(mark: Path) -> dict[str, str]:
    """Return calls that leave ``mark`` if they succeed."""
    return {
        "creat": f'T.call_extern("int32", "creat", "{mark}", 438)',
        "system": f'T.call_extern("int32", "system", "touch {mark}")',
        "rename": f'T.call_extern("int32", "rename", "{mark}.before", "{mark}")',
        "symlink": f'T.call_extern("int32", "symlink", "/etc/passwd", "{mark}")',
    }


@pytest.mark.parametrize("name", first(2, list(effects(Path("/")))))
def test_no_file_is_made(child: WarmChild, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "mark"
    Path(f"{mark}.before").write_text("")
    assert isinstance(measured(child, planted(effects(mark)[name])), Samples)
    assert not os.path.lexists(mark)


@pytest.mark.parametrize("name", effects(Path("/")))
def test_without_walls_it_is(unwalled: WarmChild, tmp_path: Path, name: str) -> None:
    """So that the test above is known to test the walls."""
    mark = tmp_path / "mark"
    Path(f"{mark}.before").write_text("")
    measured(unwalled, planted(effects(mark)[name]))
    assert os.path.lexists(mark)


def test_its_parent_is_out_of_reach(child: WarmChild) -> None:
    kill = 'T.call_extern("int32", "kill", T.call_extern("int32", "getppid"), 9)'
    assert isinstance(measured(child, planted(kill)), Samples)


@pytest.mark.parametrize(
    ("call", "ending", "kind"),
    [
        pytest.param('T.call_extern("int32", "raise", 19)', ChildTimeout, FailureKind.TIMEOUT, marks=pytest.mark.whole),
        ('T.call_extern("int32", "pause")', ChildTimeout, FailureKind.TIMEOUT),
        pytest.param('T.call_extern("int32", "abort")', ChildCrashed, FailureKind.CRASH, marks=pytest.mark.whole),
        ('T.call_extern("int32", "exit", 0)', ChildCrashed, FailureKind.CRASH),
    ],
    ids=["stops itself", "sleeps", "aborts", "leaves"],
)
def test_its_end_has_a_name_and_the_next_trial_is_measured(
    child: WarmChild, call: str, ending: type[ChildError], kind: FailureKind
) -> None:
    measured(child, planted("0"))  # from here on the child is warm
    with pytest.raises(ending) as caught:
        measured(child, planted(call), seconds=2.0)
    failure = child_calls.failure_of(caught.value, Stage.RUN)
    assert failure.kind is kind
    assert isinstance(measured(child, planted("0")), Samples)
