"""A process that listens no more is noticed."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tests.support.waiting import wait_for
from workers import liveness


def test_who_listens_no_more_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "LOST_SECONDS", 0.3)
    monkeypatch.setattr(liveness, "_LOOK_SECONDS", 0.05)
    path = tmp_path / "raylet"
    lost: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as gcs, socket.socket(socket.AF_UNIX) as raylet:
        raylet.bind(str(path))
        raylet.listen()
        address = gcs.getsockname()
        liveness.watch("GCS", address, lost.append)
        liveness.watch("raylet", path, lost.append)
        time.sleep(1.0)
        assert lost == []
    wait_for("both to be noticed", lambda: len(lost) == 2)
    assert {reason.split()[0] for reason in lost} == {"GCS", "raylet"}
