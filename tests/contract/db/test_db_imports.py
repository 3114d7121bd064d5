"""Imported bests: which of them the machines of a service have to certify."""

from __future__ import annotations

from dataclasses import replace

from db.access.views import Quota
from db.access.visibility import Viewer
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


def test_the_fastest_signed_schedule_for_the_very_target_is_answered(world: World) -> None:
    target = world.device_class.target_json
    here = DeviceClass.imported(target, "tvm 0.27")
    for hash in ("w-1", "w-2"):
        imported(world, hash, device_class=here)
    imported(world, "w-3")  # another target
    imported(world, "w-4", None, device_class=here)
    imported(world, "w-5", tvm_version="0.26", device_class=here)
    class_id = world.db.devices.put(here)
    faster = ImportedRecord("w-1", class_id, '["faster"]', (0.125,), "0.27", SIGNED)
    unsigned = ImportedRecord("w-1", class_id, '["unsigned"]', (0.0625,), "0.27", None)
    world.db.records.import_([faster, unsigned])
    hashes = [f"w-{number}" for number in range(1, 7)]
    found = world.db.imports.schedules([*hashes, "w-1"], target)
    assert {each.workload_hash: each.trace_json for each in found} == {"w-1": '["faster"]', "w-2": '["w-2"]'}
    assert {each.record_id for each in found} <= {record.id for record in world.db.records.page().items}
    assert world.db.imports.schedules([], target) == []


def test_others_are_not_answered_with_what_was_imported_for_a_private_function(world: World) -> None:
    world.db.users.create("alice", Scope.SUBMIT, Quota())
    world.job("w-1", private=True, user_name="alice")
    imported(world, "w-1", user="alice", device_class=DeviceClass.imported(world.device_class.target_json, "tvm 0.27"))
    seen = {
        name: len(world.db.seen_by(Viewer(name)).imports.schedules(["w-1"], world.device_class.target_json))
        for name in ("alice", None)
    }
    assert seen == {"alice": 1, None: 0}


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
