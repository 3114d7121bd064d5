"""Whether tables are older than the code is told, so that no process runs on them."""

from __future__ import annotations

import pytest

from db import migrate, revisions


def test_tables_are_behind_until_they_are_migrated(empty_url: str) -> None:
    assert revisions.is_behind(empty_url)
    migrate.upgrade(empty_url)
    assert not revisions.is_behind(empty_url)


def test_tables_of_an_earlier_release_are_behind(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = revisions.known()
    monkeypatch.setattr(revisions, "known", lambda: [*known, "9999"])
    assert revisions.is_behind(url)


def test_tables_of_a_later_release_are_not_behind(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "current", lambda _: "9999")
    assert not revisions.is_behind(url)
