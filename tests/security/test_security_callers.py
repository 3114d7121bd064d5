"""No caller has more than its share of the children that read modules, and what it leaves behind is not worked on."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest

from service import app
from service.api import sandbox
from tests.support import faults, played_fleet
from tests.support.served_api import ServedApi, served
from tests.support.waiting import wait_for
from workers.walls.levels import Policy


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApi]:
    """One child, which hangs if the module says so; nothing but its caller's leaving frees it in time for the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "PRELOAD", [faults.__name__])
        patch.setattr(sandbox, "PARSE", replace(sandbox.PARSE, module=faults.__name__, function="hang_if_told"))
        patch.setattr(sandbox, "SECONDS", 600.0)
        patch.setattr(sandbox, "WAIT_SECONDS", 600.0)
        patch.setattr(app, "_SANDBOXES", 1)
        with served(tmp_path_factory.mktemp("api"), sandbox=Policy.OFF) as api:
            played_fleet.join(api.database)
            yield api


def _body(data: str) -> str:
    return json.dumps({"module": {"format": "tvmscript", "data": data}})


@contextlib.contextmanager
def _asking(api: ServedApi, data: str) -> Iterator[None]:
    """Ask for a preview, and leave at the end of the context."""
    body = _body(data)
    head = (
        f"POST /api/v1/jobs/preview HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {api.headers['Authorization']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", api.port)) as connection:
        connection.sendall((head + body).encode())
        yield


def _preview(api: ServedApi, data: str = "x") -> httpx.Response:
    headers = {"Content-Type": "application/json"}
    return api.http.post("/api/v1/jobs/preview", content=_body(data), headers=headers)


def _runs(file: Path) -> int:
    """The process that hangs, once it does."""
    return int(wait_for("the call to run", lambda: file.read_text() if file.exists() else None))


def test_a_call_whose_caller_leaves_is_stopped_and_its_child_is_free(api: ServedApi, tmp_path: Path) -> None:
    for number in range(3):
        file = tmp_path / f"pid{number}"
        with _asking(api, str(file)):
            process = psutil.Process(_runs(file))
        wait_for("its end", lambda process=process: not process.is_running())  # type: ignore[misc]
        assert _preview(api).status_code == 422


def test_one_caller_has_two_calls_at_a_time_and_those_it_left_do_not_count(api: ServedApi, tmp_path: Path) -> None:
    running, waiting = tmp_path / "running", tmp_path / "waiting"
    with ThreadPoolExecutor(1) as pool:
        with _asking(api, str(running)):
            _runs(running)
            with _asking(api, str(waiting)):
                shares = api.context.sandbox._shares
                wait_for("both to be counted", lambda: shares._sum == 2)
                refusal = _preview(api)
                assert refusal.status_code == 429
                assert refusal.headers["Retry-After"] == "1"
                assert refusal.json()["type"] == "urn:loopwright:too-many-requests"
                assert api.http.get("/api/v1/jobs").status_code == 200
            third = pool.submit(_once_there_is_a_place, api)
        assert third.result().status_code == 422
    assert not waiting.exists()


def _once_there_is_a_place(api: ServedApi) -> httpx.Response:
    def look() -> httpx.Response | None:
        answer = _preview(api)
        return answer if answer.status_code != 429 else None

    return wait_for("a place", look)
