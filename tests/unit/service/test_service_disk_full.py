"""A full disk is named as such: it also keeps the heartbeats of workers from being stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.programs import MM_RELU
from tests.support.served_api import served


def test_without_room_the_disk_is_named_and_not_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"module": {"format": "tvmscript", "data": MM_RELU}, "target": "auto", "budget": {"max_trials": 1}}
    monkeypatch.setattr("service.api.sandbox.PRELOAD", [])  # nothing is parsed
    with served(tmp_path) as api:
        assert api.http.post("/api/v1/jobs", json=body).json()["type"] == "urn:loopwright:no-worker"
        assert api.http.get("/readyz").json()["type"] == "urn:loopwright:not-ready"
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr("db.database.shutil.disk_usage", lambda _: usage._replace(free=1000))
        for answer in (api.http.post("/api/v1/jobs", json=body), api.http.get("/readyz")):
            assert (answer.status_code, answer.json()["type"]) == (503, "urn:loopwright:disk-full")
            assert "it has 0.0 MB left" in answer.json()["detail"]
            assert str(tmp_path) not in answer.text  # `/readyz` needs no token
            assert "Retry-After" in answer.headers
