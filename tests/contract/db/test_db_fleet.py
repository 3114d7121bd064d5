"""Workers, devices and workloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from db import NotFound
from db.inputs import WorkerReport
from db.views import OfferView, WorkerCount
from loopwright.codegen.kinds import SandboxLevel, Values
from tests.contract.db.conftest import World
from tuner.types import TensorInfo


def register(world: World, id: str, **fields: Any) -> None:
    said: dict[str, Any] = {
        "host": f"host {id}",
        "device": "cpu",
        "device_class": world.device_class,
        "builders": 2,
        "sandbox": SandboxLevel.LANDLOCK,
    } | fields
    world.db.workers.register(WorkerReport(id, **said))


def test_a_worker_is_alive_while_it_is_seen(world: World) -> None:
    register(world, "a")
    world.clock.forward(8)
    register(world, "b")
    world.clock.forward(5)
    assert [(worker.id, worker.alive) for worker in world.db.workers.all(10)] == [("a", False), ("b", True)]
    register(world, "a")
    a, b = world.db.workers.all(10)
    assert (a.alive, a.last_seen_at, a.builders, a.device_class) == (True, world.clock(), 2, world.device_class)
    assert b.alive


def test_workers_are_counted(world: World) -> None:
    assert world.db.workers.count(30) == WorkerCount(0, 0, 0)
    for name in ("one", "two", "gone"):
        register(world, name)
        world.db.workers.quarantine(name, None if name == "one" else "slow")
    assert world.db.workers.count(30) == WorkerCount(total=3, alive=3, quarantined=2)
    world.clock.forward(60)
    register(world, "one")
    register(world, "two")
    assert world.db.workers.count(30) == WorkerCount(total=3, alive=2, quarantined=1)


def test_registering_again_replaces_what_was_said(world: World) -> None:
    other = replace(world.device_class, threads=4)
    register(world, "a")
    [worker] = world.db.workers.all(10)
    assert worker.sandbox is SandboxLevel.LANDLOCK
    register(world, "a", device_class=other, builders=0, sandbox=SandboxLevel.NONE)
    [worker] = world.db.workers.all(10)
    assert (worker.device_class, worker.builders, worker.sandbox) == (other, 0, SandboxLevel.NONE)


def test_offers_count_live_workers(world: World) -> None:
    register(world, "gone", device_class=replace(world.device_class, model="old"))
    world.clock.forward(60)
    other = replace(world.device_class, target_json='"llvm -mcpu=core2"')
    for id, device_class in (("a", other), ("b", world.device_class), ("c", other)):
        register(world, id, device_class=device_class)
    assert world.db.workers.offers(10) == [OfferView(other, 2), OfferView(world.device_class, 1)]
    assert len(world.db.devices.all()) == 3


def test_offers_and_labels_are_those_of_live_workers(world: World) -> None:
    register(world, "gone", labels={"rack": "c"})
    world.clock.forward(60)
    other = replace(world.device_class, model="other")
    register(world, "a", labels={"rack": "a", "tier": "gold"})
    register(world, "b", labels={"rack": "b"}, device_class=other)
    register(world, "c")
    assert world.db.workers.labels(10) == {"a": {"rack": "a", "tier": "gold"}, "b": {"rack": "b"}, "c": {}}
    assert world.db.workers.offers(10, {"rack": "a"}) == [OfferView(world.device_class, 1)]
    assert world.db.workers.offers(10, {"rack": "b"}) == [OfferView(other, 1)]
    assert world.db.workers.offers(10, {"rack": "a", "tier": "tin"}) == []
    assert world.db.workers.offers(10, {"rack": "c"}) == []
    assert world.db.workers.offers(10, {}) == [OfferView(world.device_class, 2), OfferView(other, 1)]


def test_a_device_class_is_stored_once(world: World) -> None:
    assert world.db.devices.put(world.device_class) == world.db.devices.put(world.device_class) == world.device_class.id
    assert world.db.devices.all() == [world.device_class]
    with pytest.raises(NotFound):
        world.db.devices.get("nothing")


def test_a_workload_is_stored_once_for_a_tvm_version(world: World) -> None:
    workload = replace(world.workload(), args=(TensorInfo((), "int8"), TensorInfo((2, 3), "float16")))
    world.db.workloads.put([workload], "1.0")
    world.clock.forward(1)
    world.db.workloads.put([replace(workload, module_json="other")], "1.0")
    detail = world.db.workloads.get("w0")
    assert (detail.module_json, detail.summary.args) == ("{}", workload.args)


def test_another_tvm_version_renews_the_texts(world: World) -> None:
    world.db.workloads.put([world.workload()], "1.0")
    created_at = world.clock()
    world.clock.forward(1)
    world.db.workloads.put([replace(world.workload(), module_json="[]", script="# new")], "2.0")
    detail = world.db.workloads.get("w0")
    assert (detail.module_json, detail.script, detail.summary.tvm_version) == ("[]", "# new", "2.0")
    assert detail.summary.created_at == created_at


def test_other_values_of_arguments_renew_a_workload(world: World) -> None:
    """A later release may know more of them than the one that stored the workload."""
    old = replace(world.workload(), args=(TensorInfo((2, 3), "float32"), TensorInfo((), "int8")))
    new = replace(old, args=(replace(old.args[0], values=Values.SMALL), old.args[1]), script="# new")
    for workload in (old, new, replace(new, script="# not stored")):
        world.db.workloads.put([workload], "1.0")
    detail = world.db.workloads.get("w0")
    assert (detail.summary.args, detail.script) == (new.args, "# new")


def test_workloads_are_listed_with_their_records(world: World) -> None:
    world.measured(0.5, 0.25, hash="a")
    world.job("b")
    first = world.db.workloads.page(1)
    assert [(workload.hash, workload.records) for workload in first.items] == [("b", 0)]
    rest = world.db.workloads.page(1, first.next_page_token)
    assert [(workload.hash, workload.records) for workload in rest.items] == [("a", 3)]
    assert rest.next_page_token is None
    with pytest.raises(NotFound):
        world.db.workloads.get("nothing")


def test_ping_asks_the_database(world: World) -> None:
    world.db.ping()


def test_a_fleet_registers_in_one_call(world: World) -> None:
    other = replace(world.device_class, threads=4)
    reports = [
        WorkerReport(
            f"{number}", f"host {number}", "cpu", [world.device_class, other][number % 2], 2, SandboxLevel.NONE
        )
        for number in range(7)
    ]
    world.db.workers.register(*reports)
    world.clock.forward(5)
    world.db.workers.register(*(replace(report, builders=3, labels={"rack": "a"}) for report in reports[:4]))
    world.db.workers.register()
    views = world.db.workers.all(3)
    assert [(view.id, view.builders, view.alive, view.labels) for view in views] == [
        (f"{number}", 3 if number < 4 else 2, number < 4, {"rack": "a"} if number < 4 else {}) for number in range(7)
    ]
    assert [view.device_class for view in views] == [report.device_class for report in reports]
