"""A server that listens no more, or does not answer, is noticed."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.support.waiting import wait_for
from workers.ray import liveness

LOOKS = 30
"""They take longer than the limits below."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "LOST_SECONDS", 1.0)
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(liveness, "_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(liveness, "_LOOK_SECONDS", 0.05)


def settings(connection: socket.socket) -> None:
    connection.recv(1024)
    connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))


def refusal(connection: socket.socket) -> None:
    """What a server of TLS does with a greeting in plain text."""


def serve(server: socket.socket, answer: Callable[[socket.socket], None], lost: list[str]) -> None:
    """Answer some looks, and no more. Fails if it counts as lost meanwhile."""
    for _ in range(LOOKS):
        connection, _ = server.accept()
        with connection:
            answer(connection)
        assert lost == []


@pytest.mark.parametrize("answer", [settings, pytest.param(refusal, marks=pytest.mark.whole)])
def test_who_answers_is_not_lost_and_who_falls_silent_is(answer: Callable[[socket.socket], None]) -> None:
    lost: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        liveness.watch("raylet", server.getsockname(), lost.append)
        serve(server, answer, lost)
        # The kernel still accepts connections, as it does for a stopped process.
        wait_for("the silence to be noticed", lambda: lost)
    assert "raylet does not answer" in lost[0]
    assert "timed out" in lost[0]


def test_who_listens_no_more_is_lost() -> None:
    lost: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    liveness.watch("GCS", address, lost.append)
    wait_for("the end to be noticed", lambda: lost)
    assert "refused" in lost[0]
