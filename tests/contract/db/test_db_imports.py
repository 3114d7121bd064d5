"""Imported bests: which of them the machines of a service have to certify."""

from __future__ import annotations

from dataclasses import replace

from db.access.views import Quota
from db.inputs import ImportedCertificate, ImportedRecord
from db.states import Scope
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World
from tuner.types import DeviceClass

SIGNED = ImportedCertificate("{}", "a key", "a signature")
ELSEWHERE = DeviceClass.imported('{"kind":"llvm","mcpu":"znver4"}', "tvm 0.27")
GPU = DeviceClass.imported('{"kind":"cuda"}', "tvm 0.27")


def imported(
    world: World,
    hash: str,
    certificate: ImportedCertificate | None = SIGNED,
    *,
    tvm_version: str = "0.27",
    device_class: DeviceClass = ELSEWHERE,
    user: str = "owner",
) -> None:
    world.db.workloads.import_([world.workload(hash)], "0.27", user)
    class_id = world.db.devices.put(device_class)
    world.db.records.import_([ImportedRecord(hash, class_id, f'["{hash}"]', (0.25,), tvm_version, certificate)])
    world.clock.forward(1)


def due(world: World, limit: int = 20) -> list[str]:
    return world.db.imports.due(world.device_class, "0.27", limit)


def test_what_came_with_a_certificate_is_due_the_first_import_first(world: World) -> None:
    for hash in ("w-2", "w-1", "w-3"):
        imported(world, hash)
    assert due(world) == ["w-2", "w-1", "w-3"]
    assert due(world, limit=2) == ["w-2", "w-1"]
    assert due(world, limit=0) == []


def test_other_imports_are_not_due(world: World) -> None:
    imported(world, "w-1", None)
    imported(world, "w-2", tvm_version="0.26")
    imported(world, "w-3", device_class=GPU)
    assert due(world) == []
    assert world.db.imports.due(replace(world.device_class, target_json='{"kind":"cuda"}'), "0.27", 20) == ["w-3"]
    assert world.db.imports.due(world.device_class, "0.28", 20) == []


def test_what_is_known_or_was_tried_on_the_machines_is_not_due(world: World) -> None:
    for hash in ("w-1", "w-2", "w-3"):
        imported(world, hash)
    world.measured(0.5, hash="w-1")
    failed, _ = world.started("w-2")
    assert due(world) == ["w-3"]
    assert world.db.jobs.finish(failed.job.id, failed.lease_token, JobState.FAILED)
    assert due(world) == ["w-3"]
    # Other machines have yet to try.
    other = replace(world.device_class, model="cpu-2")
    assert world.db.imports.due(other, "0.27", 20) == ["w-1", "w-2", "w-3"]


def test_what_a_private_job_has_is_not_due(world: World) -> None:
    world.db.users.create("alice", Scope.SUBMIT, Quota())
    world.job("w-1", private=True, user_name="alice", device_class=replace(world.device_class, model="cpu-2"))
    imported(world, "w-1", user="alice")
    assert due(world) == []


def test_the_jobs_of_a_kind_are_found_by_their_key(world: World) -> None:
    world.job("w-1", idempotency_key="certify-import-1", request_digest="x")
    assert world.db.imports.ongoing("certify-import-")
    assert not world.db.imports.ongoing("certify-export-")
    claimed = world.claim()
    assert world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.SUCCEEDED)
    assert not world.db.imports.ongoing("certify-import-")
