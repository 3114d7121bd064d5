"""Leases of devices: each has one controller at most, and a controller that dies loses all of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from db.device_leases import Change, Device, kind
from db.inputs import Demand, WorkerReport
from loopwright.codegen.kinds import SandboxLevel
from tests.contract.db.conftest import World
from tests.contract.db.test_db_fleet import register

LEASE, LIVE = 8.0, 20.0
DEMAND = Demand(1, 2.5, 3, 0.0, ("cpu", "gpu rack=a"))


def renew(world: World, owner: str, *wanted: str, returned: Sequence[str] = ()) -> frozenset[str]:
    change = Change(wanted, returned)
    return world.db.device_leases.renew(owner, [DEMAND], LEASE, LIVE, lambda devices, demands: change)


def told(world: World, owner: str = "asks") -> tuple[Sequence[Device], Mapping[str, Sequence[Demand]]]:
    """Return what a controller decides by."""
    seen: list[Any] = []

    def decide(devices: Sequence[Device], demands: Mapping[str, Sequence[Demand]]) -> Change:
        seen.append((devices, demands))
        return Change((), ())

    world.db.device_leases.renew(owner, [], LEASE, LIVE, decide)
    devices, demands = seen[0]
    return devices, demands


def test_a_device_has_one_controller_until_it_is_returned(world: World) -> None:
    for id in ("1", "2", "3"):
        register(world, id)
    assert renew(world, "a", "1", "2") == {"1", "2"}
    assert renew(world, "b", "2", "3", returned=["1"]) == {"3"}
    assert renew(world, "a", returned=["2", "3"]) == {"1"}
    assert renew(world, "b", "2") == {"2", "3"}


def test_a_lease_that_is_renewed_lasts(world: World) -> None:
    register(world, "1")
    assert renew(world, "a", "1") == {"1"}
    for _ in range(3):
        world.clock.forward(LEASE - 1)
        assert renew(world, "b", "1") == set()
        assert renew(world, "a") == {"1"}


def test_devices_of_a_dead_controller_are_free(world: World) -> None:
    register(world, "1")
    assert renew(world, "a", "1") == {"1"}
    world.clock.forward(LEASE)
    assert renew(world, "b", "1") == {"1"}
    assert renew(world, "a", "1") == set()


def test_who_frees_devices_and_takes_others_does_not_lock_out_a_report_of_all(world: World) -> None:
    """Reports lock devices by their ids. A renewal that locked the freed device first could wait for one with it."""
    report = [
        WorkerReport(id, f"host {id}", "cpu", world.device_class, 2, SandboxLevel.LANDLOCK) for id in ("1", "2", "3")
    ]
    world.db.workers.register(*report)
    assert renew(world, "dead", "3") == {"3"}
    world.clock.forward(LEASE)
    reports: list[Future[None]] = []

    def decide(devices: Sequence[Device], demands: Mapping[str, Sequence[Demand]]) -> Change:
        reports.append(pool.submit(world.db.workers.register, *report))
        wait(reports, 0.3)
        return Change(["1"], [])

    with ThreadPoolExecutor(1) as pool:
        assert world.db.device_leases.renew("a", [DEMAND], LEASE, LIVE, decide) == {"1"}
        reports[0].result()


def test_who_was_late_has_no_device_though_nobody_took_it(world: World) -> None:
    register(world, "1")
    assert renew(world, "a", "1") == {"1"}
    world.clock.forward(LEASE)
    assert renew(world, "a") == set()


def test_who_gives_up_its_lease_frees_its_devices(world: World) -> None:
    register(world, "1")
    assert renew(world, "a", "1") == {"1"}
    world.db.device_leases.give_up("a")
    assert renew(world, "b", "1") == {"1"}
    assert told(world)[1].keys() == {"asks", "b"}


def test_a_report_of_a_worker_keeps_its_lease(world: World) -> None:
    register(world, "1")
    assert renew(world, "a", "1") == {"1"}
    register(world, "1")
    assert renew(world, "a") == {"1"}


def test_controllers_decide_by_what_all_of_them_want_and_by_what_can_measure(world: World) -> None:
    register(world, "late")
    world.clock.forward(LIVE + 1)
    register(world, "1", labels={"rack": "a", "disk": "1"})
    register(world, "2")
    register(world, "slow")
    world.db.workers.quarantine("slow", "slow")
    register(world, "away")
    world.db.workers.drain("away", drained=True)
    renew(world, "a", "2")
    devices, demands = told(world)
    labelled = kind(world.device_class.id, {"disk": "1", "rack": "a"})
    assert devices == [Device("1", labelled, None), Device("2", kind(world.device_class.id, {}), "a")]
    assert demands == {"a": [DEMAND], "asks": []}


def test_many_at_once_never_share_a_device(world: World) -> None:
    ids = [str(number) for number in range(6)]
    for id in ids:
        register(world, id)

    def grab(owner: str) -> frozenset[str]:
        had: frozenset[str] = frozenset()
        for _ in range(5):
            had = renew(world, owner, *ids, returned=sorted(had)[:1])
        return had

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(grab, "abcd"))
    assert sum(map(len, found)) == len(frozenset().union(*found))
