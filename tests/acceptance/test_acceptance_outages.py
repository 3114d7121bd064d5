"""What becomes of jobs and of the service when the database cannot work."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import httpx
import psutil
import pytest

from service.process.exit_status import ExitStatus
from tests.support.ledger import check_ledger
from tests.support.postgres import postgres_server, stopped
from tests.support.programs import product
from tests.support.service import Service
from tests.support.waiting import wait_for

pytestmark = pytest.mark.whole
OUTAGE_SECONDS = 10.0


def parts(service: Service) -> set[psutil.Process]:
    return {*service.find("-m service api"), *service.find("-m service controller")}


def test_a_job_goes_on_after_an_outage_of_postgresql(tmp_path: Path) -> None:
    """A stop ends all connections, and longer than a lease lasts nobody can renew one."""
    with postgres_server() as server, Service(tmp_path, server.get_uri()) as service:
        job_id = service.submit(product(128, 96), trials=24)
        before = service.in_the_middle(job_id)["progress"]["trials"]
        there = parts(service)
        assert len(there) == 2
        with stopped(server):
            until = time.monotonic() + OUTAGE_SECONDS
            answer = service.http.get("/api/v1/jobs")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2"), answer.text
            assert answer.json()["type"] == "urn:loopwright:database-away"
            assert httpx.get(f"{service.url}/healthz").status_code == 200
            assert service.http.get("/readyz").status_code == 503
            time.sleep(max(0.0, until - time.monotonic()))
        wait_for("more trials", lambda: service.job(job_id)["progress"]["trials"] > before)
        job = service.finished(job_id)
        assert job["state"] == "succeeded", job
        check_ledger(service, job)
        assert there <= parts(service)
        states = [event["data"]["state"] for event in service.events(job_id) if event["type"] == "job"]
        assert states == ["queued", "running", "succeeded"], "the job was claimed again"
        assert service.stop() == 0


def test_damage_that_is_found_while_running_ends_the_service_with_its_reason(tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        file = service.data_dir / "loopwright.db"
        with file.open("r+b") as opened:
            opened.seek(4096)
            opened.write(b"\xff" * (file.stat().st_size - 4096))

        def ended() -> bool:
            with contextlib.suppress(httpx.TransportError):
                answer = service.post_job(product(32, 32))
                assert answer.status_code in (202, 500, 503), answer.text
            return not service.running()

        wait_for("the end of the service", ended)
        assert service.ended() == ExitStatus.DATABASE_DAMAGED
        (line,) = (tmp_path / "stderr").read_text().splitlines()
        assert line.startswith("loopwright: the database is damaged: ")
