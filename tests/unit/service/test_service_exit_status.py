"""Processes that cannot go on end with a status and one line that says what to do."""

from __future__ import annotations

import errno
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from db import migrate
from db.errors import AccessRefused, DatabaseAway, DatabaseDamaged, DiskFull, SchemaTooNew
from service.__main__ import main
from service.controller import controller
from service.outage import Outage, await_database
from service.process.exit_status import ExitStatus, explained, status_of
from service.process.restarts import MOST, WITHIN_SECONDS, Restarts
from service.settings import Settings
from tests.support.service import ROOT, free_port

GUIDE = ROOT / "docs" / "guides" / "recovery.md"


def run(data_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "service", *words, "--data-dir", str(data_dir), "--port", str(free_port())]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("error", "status", "advice"),
    [
        (SchemaTooNew("9999"), ExitStatus.SCHEMA_TOO_NEW, "Run that version"),
        (DatabaseDamaged("malformed"), ExitStatus.DATABASE_DAMAGED, "from a backup"),
        (DiskFull("full"), ExitStatus.DISK_FULL, "Make room"),
        (OSError(errno.ENOSPC, "No space left on device"), ExitStatus.DISK_FULL, "Make room"),
        (AccessRefused("wrong password"), ExitStatus.DATABASE_REFUSED, "LOOPWRIGHT_DATABASE_URL"),
        (DatabaseAway("gone"), ExitStatus.DATABASE_AWAY, "start it"),
        (PermissionError(errno.EACCES, "Permission denied", "/data/lw/lock"), ExitStatus.DATA_DIRECTORY, "--data-dir"),
        (OSError(errno.EROFS, "Read-only file system", "/data"), ExitStatus.DATA_DIRECTORY, "--data-dir"),
    ],
)
def test_each_reason_has_a_status_and_one_line(
    error: Exception, status: ExitStatus, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(SystemExit) as ended,
        explained(Settings(data_dir=Path("/data/lw"), database_url="postgresql://host/name")),
    ):
        raise error
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == status
    assert line.startswith("loopwright: ")
    assert advice in line


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--prot", "8124"), "unrecognized arguments: --prot"), (("migrat",), "there is no role 'migrat'; the roles are")],
)
def test_wrong_options_and_roles_are_named(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["service", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(FileNotFoundError), explained(Settings(data_dir=Path("/data/lw"))):
        raise FileNotFoundError(errno.ENOENT, "No such file", "/elsewhere")


def test_the_guide_lists_every_status() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", GUIDE.read_text(), re.MULTILINE)}
    assert listed == {0, 2, *map(int, ExitStatus)}


@pytest.mark.parametrize("role", [pytest.param("serve", marks=pytest.mark.whole), "controller"])
def test_a_data_directory_that_cannot_be_made(tmp_path: Path, role: str) -> None:
    (tmp_path / "file").touch()
    ended = run(tmp_path / "file" / "data", role)
    assert ended.returncode == ExitStatus.DATA_DIRECTORY
    assert len(ended.stderr.splitlines()) == 1, ended.stderr


@pytest.mark.whole
@pytest.mark.parametrize("role", ["serve", "api"])
def test_a_database_of_a_newer_version(tmp_path: Path, role: str) -> None:
    migrate.upgrade(Settings(data_dir=tmp_path).database)
    with sqlite3.connect(tmp_path / "loopwright.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    ended = run(tmp_path, role)
    assert ended.returncode == ExitStatus.SCHEMA_TOO_NEW
    (line,) = ended.stderr.splitlines()
    assert "'9999'" in line


@pytest.mark.parametrize("role", ["api", "controller"])
def test_a_role_does_not_start_on_tables_that_are_older_than_its_code(
    tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["service", role, "--data-dir", str(tmp_path)])
    with pytest.raises(SystemExit, match="python -m service migrate"):
        main()


def test_a_damaged_database(tmp_path: Path) -> None:
    (tmp_path / "loopwright.db").write_bytes(b"no database at all" * 1000)
    ended = run(tmp_path, "serve")
    assert ended.returncode == ExitStatus.DATABASE_DAMAGED
    step, reason = ended.stderr.splitlines()
    assert step == f"loopwright: the database of {tmp_path} is opened ..."
    assert "from a backup" in reason


def test_a_server_that_is_not_there_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DatabaseAway, match="refused"):
        await_database(f"postgresql://nobody@127.0.0.1:{free_port()}/nothing", seconds=0.3)
    assert caplog.text.count("Waiting for the database") == 1


def test_an_outage_ends_when_the_database_answers_or_patience_is_over() -> None:
    away = DatabaseAway("gone")

    class Pinged:
        answers = iter([away, away, None])

        def ping(self) -> None:
            if (answer := next(self.answers, away)) is not None:
                raise answer

    database: object = Pinged()
    outage = Outage(database, patience=2.0)  # type: ignore[arg-type]
    outage.sit_out(away)
    outage.over()
    with pytest.raises(DatabaseAway):
        outage.sit_out(away)
    stop = threading.Event()
    stop.set()
    Outage(database).sit_out(away, stop)  # type: ignore[arg-type]


def test_a_part_is_started_again_a_few_times_and_later_again() -> None:
    restarts = Restarts()
    pauses = [restarts.pause(now=number) for number in range(MOST)]
    assert pauses == sorted(pause for pause in pauses if pause is not None)
    assert restarts.pause(now=MOST) is None
    assert restarts.pause(now=WITHIN_SECONDS + MOST) == pauses[0]


def test_a_controller_whose_cluster_does_not_take_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise ConnectionError("Failed to connect to Ray cluster at head:6379")

    settings = Settings(data_dir=tmp_path, ray_address="head:6379")
    migrate.upgrade(settings.database)
    monkeypatch.setattr(controller, "connect", refused)
    with pytest.raises(SystemExit) as ended:
        controller.main(settings)
    assert ended.value.code == ExitStatus.RAY_LOST
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("loopwright: Failed to connect to Ray cluster at head:6379. Its head is away")


def test_statuses_of_others_are_failures() -> None:
    assert {status_of(number) for number in (-9, 0, 1, 3, 139)} == {ExitStatus.FAILED}
    assert status_of(75) is ExitStatus.RAY_LOST
