"""What ``python -m service doctor`` finds of a machine, and what it advises."""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from db import migrate, revisions
from loopwright.doctor import Finding, Health
from service import doctor
from service.settings import Settings
from tests.support.service import ROOT, free_port
from workers.child.warm_child import ChildError
from workers.walls.levels import Level, NoWalls, Policy


@pytest.fixture(autouse=True)
def no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no child with TVM for each question about something else: the test of the whole command does."""
    monkeypatch.setattr("workers.child.child_calls.detect_devices", list)


def found(tmp_path: Path, **settings: Any) -> dict[str, Finding]:
    """The findings by subject; that of the port is called "port"."""
    chosen: dict[str, Any] = {"data_dir": tmp_path / "data", "port": free_port()} | settings
    findings = list(doctor.findings(Settings(**chosen)))
    return {finding.subject.partition(" 2")[0]: finding for finding in findings}


@pytest.mark.whole
def test_of_a_machine_that_can_serve_nothing_is_a_problem(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "service", "doctor", "--data-dir", str(tmp_path), "--port", str(free_port())]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    findings = [Finding.model_validate(fields) for fields in json.loads(ended.stdout)]
    assert not [finding for finding in findings if finding.health is Health.PROBLEM]
    subjects = {finding.subject.partition(" 2")[0] for finding in findings}
    assert {"sandbox of users' programs", "device cpu", "memory", "data directory", "database", "Ray"} <= subjects
    assert not (tmp_path / "loopwright.db").exists()  # it only looks


def test_missing_walls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(policy: Policy) -> Level:
        if policy is Policy.REQUIRE:
            raise NoWalls("allow user namespaces")
        return Level.NONE

    monkeypatch.setattr(doctor, "choose", refuse)
    monkeypatch.setattr(doctor, "obstacles", lambda: {Level.NAMESPACES: "no bwrap", Level.LANDLOCK: None})
    subject = "sandbox of users' programs"
    required = found(tmp_path, sandbox=Policy.REQUIRE)[subject]
    assert (required.health, required.advice) == (Health.PROBLEM, "allow user namespaces")
    preferred = found(tmp_path, sandbox=Policy.PREFER)[subject]
    assert preferred.health is Health.WARNING
    assert "namespaces: no bwrap" in preferred.found


def test_devices_that_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die() -> None:
        raise ChildError("signal 11")

    monkeypatch.setattr("workers.child.child_calls.detect_devices", die)
    assert "signal 11" in found(tmp_path)["devices"].found


def test_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MEMORY_BYTES", "_ROOM_BYTES"):
        monkeypatch.setattr(doctor, name, 2**60)
    findings = found(tmp_path)
    assert (findings["memory"].health, findings["data directory"].health) == (Health.WARNING, Health.WARNING)


def test_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    finding = found(tmp_path)["data directory"]
    assert finding.health is Health.PROBLEM
    assert "--data-dir" in str(finding.advice)


def test_databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data" / "loopwright.db"
    path.parent.mkdir()
    url = f"sqlite:///{path}"
    assert found(tmp_path)["database"].found == "SQLite, made at the first start"
    migrate.upgrade(url)
    assert found(tmp_path)["database"].health is Health.OK
    with monkeypatch.context() as later:
        later.setattr(revisions, "newest", lambda: "9999")
        older = found(tmp_path)["database"]
    assert older.health is Health.WARNING
    assert "migrate" in str(older.advice)
    path.write_bytes(b"not a database" * 100)
    damaged = found(tmp_path)["database"]
    assert damaged.health is Health.PROBLEM
    assert "restore a backup" in str(damaged.advice)
    away = found(tmp_path, database_url=f"postgresql://nobody@127.0.0.1:{free_port()}/nothing")["database"]
    assert away.health is Health.PROBLEM
    assert "LOOPWRIGHT_DATABASE_URL" in str(away.advice)


def test_a_newer_database(tmp_path: Path) -> None:
    path = tmp_path / "data" / "loopwright.db"
    path.parent.mkdir()
    migrate.upgrade(f"sqlite:///{path}")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    newer = found(tmp_path)["database"]
    assert newer.health is Health.PROBLEM
    assert "run the version that made it" in str(newer.advice)


def test_a_head_of_ray_that_does_not_answer(tmp_path: Path) -> None:
    finding = found(tmp_path, ray_address=f"127.0.0.1:{free_port()}")["Ray"]
    assert finding.health is Health.PROBLEM
    assert "LOOPWRIGHT_RAY_ADDRESS" in str(finding.advice)
    with socket.create_server(("127.0.0.1", 0)) as head:
        assert found(tmp_path, ray_address=f"127.0.0.1:{head.getsockname()[1]}")["Ray"].health is Health.OK


@pytest.mark.whole
def test_a_port_that_somebody_else_has(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        findings = {f.subject: f for f in doctor.findings(Settings(data_dir=tmp_path, port=port))}
    assert findings[f"port {port}"].health is Health.PROBLEM
    assert "--port" in str(findings[f"port {port}"].advice)
