"""Fills both databases, requests pages of the list of best schedules from the API process, and opens the dashboard."""

from __future__ import annotations

import argparse
import time
from typing import Any

import httpx

from benchmarks.leaderboard.report import PAGE
from benchmarks.leaderboard.seed import WORKLOADS, seed
from benchmarks.runner import Raw, conditions
from benchmarks.services import DATABASES, api, scratch
from benchmarks.spread import percentile
from tests.support.chromium import chromium

SMOKE = ("--workloads", "2000", "--repeats", "2")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--port", type=int, default=8098)


def run(options: argparse.Namespace, raw: Raw) -> None:
    sizes = {"workloads": options.workloads, "repeats": options.repeats}
    figures: dict[str, Any] = {**sizes, "conditions": conditions(), "databases": {}}
    with scratch() as folder:
        for name, database in DATABASES.items():
            with database(folder) as url:
                started = time.monotonic()
                seed(url, options.workloads)
                seconds = time.monotonic() - started
                with api(url, options.port, folder) as http:
                    asked = {
                        what: ask(http, query, options.repeats) for what, query in questions(options.workloads).items()
                    }
                    asked["overview"] = ask(http, {}, options.repeats, "/api/v1/overview")
                    view = first_view(http, options.repeats)
            figures["databases"][name] = {"seed_seconds": seconds, "questions": asked, "first_view": view}
    raw.replace(figures)


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


def ask(
    http: httpx.Client, query: dict[str, Any], repeats: int, path: str = "/api/v1/best-schedules"
) -> dict[str, float]:
    """Milliseconds from the request to the last byte of the answer, after one request that does not count."""
    params = {"limit": PAGE, **query} if "best-schedules" in path else query
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
    return {"p50_ms": percentile(taken[1:], 50), "p95_ms": percentile(taken[1:], 95), "first_ms": taken[0]}
