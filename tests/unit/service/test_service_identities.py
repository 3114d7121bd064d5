"""Whose a token is, remembered for some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from db import Database, migrate
from db.models import OWNER
from db.states import Scope
from loopwright.codegen.kinds import TokenKind
from service.identity import visitor
from service.identity.visitor import Identities


@pytest.fixture
def database(tmp_path: Path) -> Database:
    url = f"sqlite:///{tmp_path / 'loopwright.db'}"
    migrate.upgrade(url)
    return Database(url)


def test_a_token_is_remembered_until_something_changes(database: Database) -> None:
    _, secret = database.tokens.create(OWNER, TokenKind.TOKEN, "mine", Scope.READ, None)
    identities = Identities(database)
    assert not identities.remembers(secret)
    found = identities.find(secret)
    assert identities.remembers(secret)
    database.close()
    assert identities.find(secret) == found
    identities.forget()
    assert not identities.remembers(secret)


def test_a_token_is_asked_for_again_after_a_while(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitor, "_KEPT_SECONDS", 0.0)
    _, secret = database.tokens.create(OWNER, TokenKind.TOKEN, "mine", Scope.READ, None)
    identities = Identities(database)
    assert identities.find(secret) is not None
    assert not identities.remembers(secret)
    database.close()


def test_an_unknown_token_is_not_remembered(database: Database) -> None:
    identities = Identities(database)
    assert identities.find("made up") is None
    assert not identities.remembers("made up")
    database.close()
