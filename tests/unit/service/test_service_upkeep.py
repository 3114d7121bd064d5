"""``python -m service prune`` and ``backup`` as an operator types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from db import Database, migrate
from service import __main__ as service


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/loopwright.db"
    migrate.upgrade(url)
    return url


def typed(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["service", *arguments])
    service.main()


def test_a_backup_is_a_database(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "backup", "--database-url", url, "--to", f"{tmp_path}/copy.db")
    assert f"copied to {tmp_path}/copy.db" in capsys.readouterr().out
    copy = Database(f"sqlite:///{tmp_path}/copy.db")
    assert copy.jobs.page().items == ()
    copy.close()
    with pytest.raises(SystemExit, match="exists already; give the name of a new file"):
        typed(monkeypatch, "backup", "--database-url", url, "--to", f"{tmp_path}/copy.db")
    with pytest.raises(SystemExit, match="say where to with --to FILE"):
        typed(monkeypatch, "backup", "--database-url", url)


def test_pruning_says_what_it_did(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "prune", "--database-url", url, "--dry-run")
    assert capsys.readouterr().out == "0 trials of 0 jobs would be pruned.\n"
    typed(monkeypatch, "prune", "--database-url", url, "--days", "7", "--shrink")
    assert capsys.readouterr().out == "0 trials of 0 jobs were pruned.\n"
    with pytest.raises(SystemExit, match="--days is -1; it counts back from now"):
        typed(monkeypatch, "prune", "--database-url", url, "--days", "-1")
