"""The main job on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Followed
from tests.acceptance.main_job import MM_RELU, check_main_job
from tests.support.postgres import postgres_server
from tests.support.service import Service


def test_main_job_on_sqlite(service: Service, main: Followed) -> None:
    check_main_job(service, main.job)


@pytest.mark.whole
def test_main_job_on_postgresql(tmp_path: Path) -> None:
    with postgres_server() as server, Service(tmp_path, server.get_uri()) as service:
        check_main_job(service, service.tuned(MM_RELU, trials=8))
        assert not (service.data_dir / "loopwright.db").exists()
        assert service.stop() == 0
