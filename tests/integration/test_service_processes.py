"""Several API processes behind one port are one service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.api_alone import ApiAlone
from tests.support.service import START_SECONDS
from tests.support.waiting import wait_for

pytestmark = pytest.mark.whole
REQUESTS = 20
"""Of a connection each: that all of them come to one of two processes has a chance of 1 in 2^19."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiAlone]:
    """Two processes; the one that started last is its ``process``."""
    alone = ApiAlone(tmp_path)
    alone.environment["LOOPWRIGHT_API_PROCESSES"] = "2"
    with alone:
        alone.launch("api")
        wait_for("both processes", lambda: _ask(alone) and len(_counting(alone)) == 2, START_SECONDS)
        yield alone


def _counting(api: ApiAlone) -> set[str]:
    """The processes that have counted requests."""
    return {file.stem for file in (api.data_dir / "api-metrics").glob("histogram_*.db")}


def _ask(api: ApiAlone, token: str | None = None) -> bool:
    """Ask over connections of their own, which the kernel gives to either process; whether all were answered well."""
    headers = {"Authorization": f"Bearer {token or api.token}", "Connection": "close"}
    with httpx.Client(base_url=api.url, headers=headers, timeout=90, trust_env=False) as http:
        return all(http.get("/api/v1/me").is_success for _ in range(REQUESTS))


def _counted(api: ApiAlone) -> int:
    text = httpx.get(f"{api.url}/metrics", timeout=90, trust_env=False).text
    pattern = r'^loopwright_http_request_duration_seconds_count\{[^}]*route="/api/v1/me"[^}]*\} (\S+)$'
    return int(sum(float(count) for count in re.findall(pattern, text, re.MULTILINE)))


def test_two_processes_count_together_and_one_goes_on_when_the_other_dies(api: ApiAlone) -> None:
    before = _counted(api)
    assert before >= REQUESTS
    assert _ask(api)
    assert _counted(api) == before + REQUESTS
    assert api.process is not None
    api.process.kill()
    api.process.wait()
    assert _ask(api)
    assert _counted(api) == before + 2 * REQUESTS, "what the dead process counted stays"


def test_a_token_that_one_process_revoked_is_refused_by_the_other_within_seconds(api: ApiAlone) -> None:
    made = api.http.post("/api/v1/tokens", json={"name": "other", "scope": "read"}).raise_for_status().json()
    token_id, secret = made["token"]["id"], made["secret"]
    assert _ask(api, secret)
    api.http.delete(f"/api/v1/tokens/{token_id}").raise_for_status()
    headers = {"Authorization": f"Bearer {secret}", "Connection": "close"}

    def is_refused() -> bool:
        with httpx.Client(base_url=api.url, headers=headers, timeout=90, trust_env=False) as http:
            return all(http.get("/api/v1/me").status_code == 401 for _ in range(REQUESTS))

    wait_for("both to refuse it", is_refused, 60)
