"""What is done before the processes of a service start: its tables are made or renewed, and its sandbox is chosen."""

from __future__ import annotations

import contextlib
import logging
from datetime import datetime

from db import Database, migrate
from service.outage import await_database
from service.process.serve_error import ServeError
from service.settings import Settings
from workers.walls.levels import Level, NoWalls, Policy, choose

log = logging.getLogger("loopwright.serve")


def prepare(settings: Settings) -> tuple[Settings, datetime]:
    """Wait for the database and bring it up to date.

    Return the settings with the required sandbox, and the time by the clock that stamps the database. Raises
    ServeError, and what the database raises.
    """
    await_database(settings.database)
    migrate.upgrade(settings.database)
    with contextlib.closing(Database(settings.database)) as database:
        return with_walls(settings, several_users=database.users.several()), database.now()


def with_walls(settings: Settings, *, several_users: bool) -> Settings:
    """Return the settings with the required sandbox: several users require one.

    Raise ServeError if it is required and not available, and log a warning if there is none.
    """
    if settings.sandbox is None and several_users:
        settings = settings.model_copy(update={"sandbox": Policy.REQUIRE})
    policy = settings.walls
    try:
        level = choose(policy)
    except NoWalls as error:
        raise ServeError(str(error)) from error
    if level is Level.NONE:
        reason = "as LOOPWRIGHT_SANDBOX=off asks" if policy is Policy.OFF else "because this machine can put up none"
        log.warning("submitted code runs without a sandbox, %s: admit only whom you would give a shell", reason)
    return settings
