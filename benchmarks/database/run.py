"""Fills both databases with a million trials, and times what the service asks of them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import sqlalchemy

from benchmarks.code import ROOT
from benchmarks.database.made_up import TRIALS, Size
from benchmarks.database.seed import seed
from benchmarks.runner import Raw, conditions
from benchmarks.services import DATABASES, scratch
from db.engine.connections import create_engine

SMOKE = ("--trials", "20000", "--only", "SQLite")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--only", choices=DATABASES)


def run(options: argparse.Namespace, raw: Raw) -> None:
    size = Size.of(options.trials)
    figures: dict[str, Any] = {
        "trials": size.trials,
        "workloads": size.workloads,
        "jobs": size.jobs + size.old_jobs,
        "conditions": conditions(),
        "databases": {},
    }
    with scratch() as folder:
        for name in [options.only] if options.only else DATABASES:
            with DATABASES[name](folder) as url:
                started = time.monotonic()
                seed(url, size)
                seconds = time.monotonic() - started
                figures["databases"][name] = {"seed_seconds": seconds, **figures_of(url, size)}
            raw.replace(figures)


def figures_of(url: str, size: Size) -> dict[str, Any]:
    """Return the size in bytes, and the milliseconds of each question and of what jobs write."""
    command = [sys.executable, "-m", "benchmarks.database.questions", url, str(size.trials)]
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
