"""Measures the processor time of the service's calls of the database, as the queue, the fleet and the history grow."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.calls import reads
from benchmarks.code import ROOT
from benchmarks.controllers.made_up import queue
from benchmarks.database.made_up import HEAVY, Size
from benchmarks.database.seed import seed
from benchmarks.runner import Raw, conditions
from benchmarks.services import DATABASES, scratch
from db import Database
from db.access.views import Quota
from db.states import Scope

FAMILY = 3_333
SMOKE = ("--queues", "20", "200", "--repeats", "6", "--trials", "12000", "--family", "350", "--reads", "5",
         "--databases", "SQLite")  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queues", type=int, nargs="+", default=[100, 50_000], help="jobs that wait")
    parser.add_argument("--repeats", type=int, default=51, help="calls of each kind")
    parser.add_argument("--trials", type=int, default=100_000, help="of the history")
    parser.add_argument("--family", type=int, default=FAMILY, help="functions of the largest family")
    parser.add_argument("--reads", type=int, default=60, help="reads of each kind beside jobs that write")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--port", type=int, default=8095)


def run(options: argparse.Namespace, raw: Raw) -> None:
    jobs = max(20, options.trials // 400)
    size = Size(options.trials, options.family + 200, jobs, 0, options.family)
    figures: dict[str, Any] = {"conditions": conditions(), "size": asdict(size), "heavy": HEAVY, "databases": {}}
    for name in options.databases:
        found: dict[str, Any] = {"queues": {}}
        for length in options.queues:
            found["queues"][length] = _asked(name, partial(queue, jobs=length), "queue", str(options.repeats))
        found["history"] = _asked(name, partial(_history, size=size), "history", json.dumps(asdict(size)))
        with scratch() as folder, DATABASES[name](folder) as url:
            found["reads"] = reads.measured(url, folder, options.port, options.reads)
        figures["databases"][name] = found
        raw.replace(figures)


def _history(url: str, size: Size) -> None:
    seed(url, size)
    database = Database(url)
    database.users.create("ada", Scope.SUBMIT, Quota())
    database.close()


def _asked(database: str, fill: Callable[[str], None], module: str, argument: str) -> Any:
    """Return what a child process measures in a new database."""
    with scratch() as folder, DATABASES[database](Path(folder)) as url:
        fill(url)
        command = [sys.executable, "-m", f"benchmarks.calls.{module}", url, argument]
        answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(answer.stdout)
