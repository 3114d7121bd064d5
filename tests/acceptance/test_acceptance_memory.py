"""Memory at rest after a job."""

from __future__ import annotations

from collections.abc import Iterable

import psutil
import pytest

from loopwright.codegen.kinds import FINISHED
from tests.support.processes import is_warm_child
from tests.support.service import Service
from tests.support.waiting import wait_for

GIB = 2**30


def _proportional(processes: Iterable[psutil.Process]) -> int:
    """Bytes that these processes hold, pages that several share counted once among them."""
    return sum(process.memory_full_info().pss for process in processes)


@pytest.mark.whole
@pytest.mark.usefixtures("main")
def test_memory_at_rest(service: Service) -> None:
    assert {job["state"] for job in service.items("/jobs")} <= set(FINISHED)
    api, controller = service.find("-m service api") + service.find("-m service controller")
    own = _proportional([api, controller])
    children = [process for process in api.children(recursive=True) if is_warm_child(process)]
    assert children
    assert own < GIB
    assert own + _proportional(children) < GIB
    actors = service.find("ray::Builder") + service.find("ray::Measurer")
    assert len(actors) >= 2
    (worker,) = service.items("/workers")
    for actor in actors:
        count = 1 + (worker["builders"] if "ray::Builder" in " ".join(actor.cmdline()) else 1)

        def at_rest(actor: psutil.Process = actor, count: int = count) -> list[psutil.Process] | None:
            """The actor and its children, once no fork builds what is left of a job or times the reference kernel."""
            processes = [actor, *filter(is_warm_child, actor.children(recursive=True))]
            return processes if len(processes) == count else None

        assert sum(process.memory_info().rss for process in wait_for("an actor at rest", at_rest)) < count * GIB / 2
