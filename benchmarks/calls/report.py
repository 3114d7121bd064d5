"""The report on the calls of the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.calls.history import BEAT_SECONDS, WORKERS
from benchmarks.report import Report, table

_QUEUE_MS = 5.0
_LIMITS_MS = {
    "claim": _QUEUE_MS,
    "look for jobs that the database answers": _QUEUE_MS,
    "submission of a job with two functions": _QUEUE_MS,
    "totals of the overview": _QUEUE_MS,
    "totals of the overview, a user": _QUEUE_MS,
    "relatives": 10.0,
    "predictions": 100.0,
    "leaderboard, a user": 20.0,
    "middle, a user": 20.0,
}
_BEAT_SHARE = 0.01


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    databases, size = figures["databases"], figures["size"]
    first = next(iter(databases.values()))
    return {
        "workers": f"{WORKERS:,}",
        "trials": f"{size['trials']:,}",
        "workloads": f"{size['workloads']:,}",
        "heavy": f"{figures['heavy']:,}",
        "queues": table(
            ["call", *(f"{name}, {int(length):,} jobs" for name in databases for length in first["queues"]), "limit"],
            _rows([found["queues"][length] for found in databases.values() for length in found["queues"]]),
            right=True,
        ),
        "history": table(
            ["call", *databases, "limit"],
            [*_rows([found["history"]["reads"] for found in databases.values()]), *_history(databases)],
            right=True,
        ),
        "more": table(
            ["", *databases],
            [
                *_rates([found["history"]["outcomes"] for found in databases.values()]),
                *_prunes([found["history"]["prune"] for found in databases.values()]),
            ],
            right=True,
        ),
        "reads": table(
            ["read", *databases],
            [(name, *(f"{found['reads'][name]:.1f}" for found in databases.values())) for name in first["reads"]],
            right=True,
        ),
    }


def _rows(columns: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each call, with its milliseconds in each column; those over the limit are marked."""
    for name in columns[0]:
        limit = next((limit for end, limit in _LIMITS_MS.items() if name.endswith(end) or name.startswith(end)), None)
        cells = [_marked(column[name]["cpu_ms"], limit) for column in columns]
        yield name, *cells, "" if limit is None else f"{limit:g}"


def _marked(milliseconds: float, limit: float | None) -> str:
    text = f"{milliseconds:.1f}"
    return text if limit is None or milliseconds < limit else f"{text} **over**"


def _history(databases: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    histories = [found["history"] for found in databases.values()]
    limit = 1e3 * BEAT_SECONDS * _BEAT_SHARE
    beats = [_marked(found["heartbeat"]["cpu_ms"], limit) for found in histories]
    yield f"heartbeat of {WORKERS:,} workers, each {BEAT_SECONDS:g} s", *beats, f"{limit:g}"
    for batch in histories[0]["outcomes"]:
        each = [_marked(found["outcomes"][batch]["ms_an_outcome"], None) for found in histories]
        yield f"an outcome, {batch} in a transaction", *each, ""
    prunes = [found["prune"] for found in histories]
    yield "prune of an old job", *(_marked(found["first"]["cpu_ms"], None) for found in prunes), ""
    yield "the same with nothing left", *(_marked(found["again"]["cpu_ms"], None) for found in prunes), ""


def _rates(found: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    for batch in found[0]:
        yield f"outcomes a second, {batch} in a transaction", *(f"{each[batch]['per_s']:,.0f}" for each in found)


def _prunes(found: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    yield "old jobs", *(f"{each['jobs']:,}" for each in found)
    yield "trials that were deleted", *(f"{each['deleted']:,}" for each in found)
    yield "longest time for one job, ms", *(f"{each['first']['longest_ms']:,.0f}" for each in found)


REPORT = Report("calls", Path(__file__).with_name("report.md.in"), values)
