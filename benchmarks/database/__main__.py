"""Fills both databases with a million trials, and times what the service asks of them.

.venv/bin/python -m benchmarks.database [--trials 1000000] [--only SQLite] [--url URL]

Figures go to benchmarks/results/database.json. `python -m benchmarks.database.report --pack` packs them and writes the
report. With --url, the database there is asked, as `benchmarks.database.seed` has filled it, and nothing is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy

from benchmarks.database.made_up import TRIALS, Size
from benchmarks.database.report import NAME, text
from benchmarks.database.seed import seed
from benchmarks.results import ROOT, write_raw
from db.engine import create_engine
from tests.support.postgres import postgres_server

_ENGINES = ("SQLite", "PostgreSQL")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.database")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--only", choices=_ENGINES)
    parser.add_argument("--url")
    return parser


def main() -> None:
    options = parser().parse_args()
    size = Size(trials=options.trials)
    if options.url is not None:
        print(json.dumps(figures_of(options.url, size), indent=2))
        return
    figures: dict[str, Any] = {
        "trials": size.trials,
        "workloads": size.workloads,
        "jobs": size.jobs + size.old_jobs,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_before": os.getloadavg()[0],
        "databases": {},
    }
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        for name, database in zip(_ENGINES, (sqlite(Path(scratch)), postgresql()), strict=True):
            if options.only not in (None, name):
                continue
            with database as url:
                started = time.monotonic()
                seed(url, size)
                seconds = time.monotonic() - started
                figures["databases"][name] = {"seed_seconds": seconds, **figures_of(url, size)}
                print(name, json.dumps(figures["databases"][name], indent=2), flush=True)
    print(text(figures))
    print(write_raw(NAME, figures))


def figures_of(url: str, size: Size) -> dict[str, Any]:
    """Return the size in bytes, and the milliseconds of each question and of what jobs write."""
    command = [sys.executable, "-m", "benchmarks.database.questions", url, "--trials", str(size.trials)]
    answers = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {"bytes": bytes_of(url), **json.loads(answers)}


def bytes_of(url: str) -> int:
    engine = create_engine(url)
    asked = (
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        if engine.dialect.name == "sqlite"
        else "SELECT pg_database_size(current_database())"
    )
    try:
        with engine.connect() as connection:
            return int(connection.execute(sqlalchemy.text(asked)).scalar_one())
    finally:
        engine.dispose()


@contextlib.contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    path = folder / "database.db"
    yield f"sqlite:///{path}"
    path.unlink()


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    with postgres_server() as server:
        yield server.get_uri()


if __name__ == "__main__":
    main()
