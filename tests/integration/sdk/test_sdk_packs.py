"""Packs and locks of a real API: from one service to another, whose own certificates they never become."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright import Client, Job, Lock
from loopwright.packs.signing import new_key
from loopwright.results.tables import RECORDS
from service.rechecks import imports
from tests.support import played_fleet
from tests.support.perceptron import PERCEPTRON
from tests.support.played_service import PlayedService, played
from tests.support.programs import MM_RELU
from tests.support.sdk import tuned

NOBODY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedService]:
    """Another deployment, which knows nothing yet."""
    with played(tmp_path_factory.mktemp("there")) as service:
        yield service


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A key to sign packs with, and the file of its public part."""
    private, public = tmp_path / "team.key", tmp_path / "keys.json"
    public.write_text(f"[{new_key(private).public.model_dump_json()}]")
    return private, public


def test_bests_go_to_another_service_as_imported_records(
    client: Client, product: Job, perceptron: Job, there: PlayedService, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    path = tmp_path / "models.pack"
    made = client.export_pack(path, key=keys[0], creator="the team", licence="Apache-2.0", jobs=[product, perceptron])
    hashes = {task.workload_hash for job in (product, perceptron) for task in job.tasks}
    assert made.functions == len(hashes) == 3
    assert [each.device_class for each in made.machines] == [product.info.device_class]
    scheduled = sum(not best.is_baseline for best in client.bests() if best.workload_hash in hashes)
    with Client(there.url, there.token) as other:
        report = other.install_pack(path, keys[1])
        assert (report.imported, report.errors) == (scheduled, [])
        assert (report.signed_here, report.signed_elsewhere) == (0, scheduled)
        again = other.install_pack(path, keys[1])
        assert (again.imported, again.duplicates) == (0, scheduled)
        imported = [record for record in other.records() if record.workload_hash in hashes]
        assert len(imported) == scheduled
        assert {RECORDS.row(record)[3] for record in imported} == {"imported"}
        detail = other.record(imported[0].id)
        assert (detail.origin, detail.certificate) == ("import", None)
        assert detail.imported_certificate is not None
        assert detail.imported_certificate.signed_by == "another deployment"
        # Nothing is compiled with them before a race of this service's own, or a check in the user's process.
        assert [best.workload_hash for best in other.bests() if best.workload_hash in hashes] == []
        target = product.info.target
        assert other.look_up(PERCEPTRON, target).imported == {}
        checked = other.look_up(PERCEPTRON, target, tune="instant")
        known = {name: each.record_id for name, each in checked.imported.items()}
        assert set(known.values()) & {record.id for record in imported}
        assert {name: checked.predictions[name].imported for name in known} == known

        # In idle time, its own workers race them; what wins is certified by its own key.
        jobs = [other.job(job.id) for job in imports.submit_due(there.database, [played_fleet.MACHINE])]
        assert {job.tasks[0].workload_hash for job in jobs} == {record.workload_hash for record in imported}
        assert imports.submit_due(there.database, [played_fleet.MACHINE]) == []
        for job in jobs:
            tuned(job)
            assert (job.info.priority, job.progress.total) == (-100, 8)
            best = other.best(job.tasks[0].workload_hash)
            assert best is not None
            assert best.certificate.signed is not None
            assert best.certificate.signed.key_id in {key.id for key in other.signing_keys()}
        assert imports.submit_due(there.database, [played_fleet.MACHINE]) == []


def test_a_lock_of_a_service_compiles_without_it(client: Client, product: Job, perceptron: Job, tmp_path: Path) -> None:
    path = tmp_path / "loopwright.lock"
    client.lock(MM_RELU, PERCEPTRON).write(path)
    lock = Lock.read(path)
    assert {each.workload_hash for each in lock.functions} >= {task.workload_hash for task in product.tasks}
    assert json.loads(path.read_text())["target"] == product.info.target
    with Client(NOBODY) as alone:
        for model in (MM_RELU, PERCEPTRON):
            alone.compile(model, lock=path)
            assert alone.last_report is not None
            assert alone.last_report.misses == ()
