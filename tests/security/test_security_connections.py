"""Connections whose other end does nothing are closed, and others are answered meanwhile."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from service.api import sandbox
from service.api.patience import RequestPatience
from tests.support.cases import first
from tests.support.served_api import ServedApi, served
from tests.support.waiting import wait_for
from workers.walls.levels import Policy

SHORT = RequestPatience(head=1.0, rest=1.0, reader=1.0, stall=1.0, body=2.0, body_rate=1e9)
ANSWER_SECONDS = 60.0
"""No passing test comes near."""


@pytest.fixture(scope="module", autouse=True)
def _no_modules() -> Iterator[None]:
    """The sandbox starts faster without TVM, which connections do not need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])
        yield


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApi]:
    """An API without patience."""
    with served(tmp_path_factory.mktemp("api"), SHORT, sandbox=Policy.OFF) as api:
        yield api


@pytest.fixture(scope="module")
def of_20(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApi]:
    with served(tmp_path_factory.mktemp("small"), sandbox=Policy.OFF, max_connections=20) as api:
        yield api


@pytest.fixture
def small(of_20: ServedApi) -> ServedApi:
    """An API for 20 connections, 10 of one address, once it has none."""
    wait_for("the end of all connections", lambda: not of_20.server.server_state.connections)
    return of_20


def _connect(api: ServedApi, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", api.port), ANSWER_SECONDS, (address, 0))


def _head(api: ServedApi, length: int, token: bool = True) -> bytes:
    bearer = f"Authorization: {api.headers['Authorization']}\r\n" if token else ""
    return (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def _rest(connection: socket.socket) -> bytes:
    """What comes until the service closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            received += piece
    return received


def _get(api: ServedApi, path: str) -> httpx.Response:
    """Ask over a connection of its own: one that waits for the next request may be closed while that is on its way."""
    return api.http.get(path, headers={"Connection": "close"})


def _is_healthy(api: ServedApi) -> bool:
    return _get(api, "/healthz").status_code == 200


@pytest.mark.parametrize("sent", first(1, [b"GET /healthz", b"", b"GET /healthz HTTP/1.1\r\nHost: 127"]))
def test_half_open_connections_are_closed_and_others_answered(api: ServedApi, sent: bytes) -> None:
    with contextlib.ExitStack() as connections:
        held = [connections.enter_context(_connect(api)) for _ in range(50)]
        for connection in held:
            connection.sendall(sent)
        assert _is_healthy(api)
        for connection in held:
            assert _rest(connection) == b""


def test_a_connection_is_closed_that_asks_once_and_half(api: ServedApi) -> None:
    with _connect(api) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /healthz")
        assert _rest(connection) == b""


def _drip(connection: socket.socket, piece: Callable[[int], bytes]) -> bytes:
    """Send small pieces without an end, until the service says something or closes the connection."""
    connection.settimeout(0.2)
    for number in range(int(ANSWER_SECONDS / 0.2)):
        with contextlib.suppress(TimeoutError):
            try:
                return connection.recv(1 << 16)
            except ConnectionResetError:
                return b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(piece(number))
    raise AssertionError("the service waits for ever")


def test_headers_that_come_in_drops_are_not_waited_for(api: ServedApi) -> None:
    with _connect(api) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert _drip(connection, lambda number: f"X-{number}: 1\r\n".encode()) == b""


def test_a_body_that_stops_is_answered_408(api: ServedApi) -> None:
    with _connect(api) as connection:
        connection.sendall(_head(api, 1000) + b'{"module"')
        assert _is_healthy(api)
        head, _, body = _rest(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    problem = json.loads(body)
    assert (problem["type"], problem["status"]) == ("urn:loopwright:body-too-slow", 408)
    assert "9 bytes" in problem["detail"]


@pytest.mark.whole
def test_a_body_that_comes_in_drops_is_answered_408(api: ServedApi) -> None:
    with _connect(api) as connection:
        connection.sendall(_head(api, 100_000))
        assert _drip(connection, lambda _: b" ").startswith(b"HTTP/1.1 408")


def test_a_body_that_was_refused_is_not_waited_for(api: ServedApi) -> None:
    with _connect(api) as connection:
        connection.sendall(_head(api, 100_000, token=False) + b"{")
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 401")
        assert _drip(connection, lambda _: b" ") == b""


def test_a_caller_that_reads_nothing_is_left(api: ServedApi) -> None:
    """Of many answers, until no buffer has room."""
    request = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", api.port))
        connection.sendall(request * 200)
        port = connection.getsockname()[1]
        wait_for("the connection to be taken", lambda: port in _ports(api))
        wait_for("the connection to be closed", lambda: port not in _ports(api))
        assert _is_healthy(api)


def _ports(api: ServedApi) -> list[int | None]:
    return [each.client[1] for each in list(api.server.server_state.connections) if each.client]


@pytest.mark.whole
def test_answers_take_as_long_as_they_take(api: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadlines are the other end's."""
    monkeypatch.setattr("db.database.Database.ping", lambda _: time.sleep(3))
    assert _get(api, "/readyz").json()["type"] == "urn:loopwright:not-ready"


def test_one_address_cannot_take_all_connections(small: ServedApi) -> None:
    with contextlib.ExitStack() as connections:
        held = [connections.enter_context(_connect(small, "127.0.0.2")) for _ in range(10)]
        wait_for("the connections to be counted", lambda: len(small.server.server_state.connections) == 10)
        with _connect(small, "127.0.0.2") as dropped:
            assert _rest(dropped) == b""
        assert _is_healthy(small)
        held[0].close()
        wait_for("a place", lambda: _answers(small, "127.0.0.2"))


def test_connections_over_the_limit_are_told_so(small: ServedApi) -> None:
    with contextlib.ExitStack() as connections:
        for address in ("127.0.0.2", "127.0.0.3"):
            for _ in range(10):
                connections.enter_context(_connect(small, address))
        wait_for("the connections to be counted", lambda: len(small.server.server_state.connections) == 20)
        assert _get(small, "/healthz").status_code == 503
    wait_for("their places", lambda: _is_healthy(small))


def _answers(api: ServedApi, address: str) -> bool:
    with _connect(api, address) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return False
