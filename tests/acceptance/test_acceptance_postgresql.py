"""The main job on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.main_job import main_job
from tests.support.postgres import postgres_server
from tests.support.service import Service


def test_main_job_on_postgresql(tmp_path: Path) -> None:
    with postgres_server() as server, Service(tmp_path, server.get_uri()) as service:
        main_job(service, trials=8)
        assert not (service.data_dir / "loopwright.db").exists()
        assert service.stop() == 0
