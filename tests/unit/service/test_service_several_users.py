"""With more than one user there have to be walls, unless the settings say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from db import Database, migrate
from db.access.views import Quota
from db.states import Scope
from service.process import preparation
from service.process.preparation import prepare
from service.process.serve_error import ServeError
from service.settings import Settings
from workers.walls.levels import Level, NoWalls, Policy


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(data_dir=tmp_path)
    migrate.upgrade(settings.database)
    return settings


def add_a_user(settings: Settings) -> None:
    database = Database(settings.database)
    database.users.create("ada", Scope.SUBMIT, Quota())
    database.close()


def no_walls(policy: Policy) -> Level:
    """What a machine answers that can put up none."""
    if policy is Policy.REQUIRE:
        raise NoWalls("no walls here")
    return Level.NONE


def test_another_user_requires_walls(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "choose", no_walls)
    assert prepare(settings)[0].walls is Policy.PREFER
    add_a_user(settings)
    with pytest.raises(ServeError, match="no walls here"):
        prepare(settings)


def test_the_settings_decide_otherwise(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "choose", no_walls)
    add_a_user(settings)
    assert prepare(settings.model_copy(update={"sandbox": Policy.OFF}))[0].walls is Policy.OFF
