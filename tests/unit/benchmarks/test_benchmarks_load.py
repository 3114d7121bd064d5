"""What the load benchmark makes of its figures."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import Any

import pytest

from benchmarks.load.generator import Found, Users, send
from benchmarks.load.mix import MIX, Kind, Known, Read
from benchmarks.load.report import REPORT, missed
from benchmarks.spread import percentile
from tests.support import own_loop


def load(milliseconds: list[float], half_open: int = 0, rate: float = 200.0, **streams: Any) -> dict[str, Any]:
    return {
        "rate": rate,
        "reads": {
            "kinds": {"job": milliseconds, "me": []},
            "errors": [],
            "late": [0.0] * len(milliseconds),
            "unchanged": len(milliseconds) // 4,
        },
        "api_cpu_share": 0.5,
        "cpu_shares": {"generator": 0.125, "streams": 0.0625, "jobs": 0.0625},
        "streams": {"delays": [10.0, 20.0], "errors": [], "missed": 0, **streams},
        "half_open": {"connections": half_open, "opened": half_open, "failed": 0},
    }


def figures(*loads: dict[str, Any]) -> dict[str, Any]:
    return {
        "machine": "a machine",
        "load_before": 0.0,
        "seconds": 60.0,
        "rate": 200.0,
        "jobs": 20,
        "trials": 1.0,
        "streams": 200,
        "half_open": 500,
        "users": 16,
        "workloads": 5000,
        "databases": {"SQLite": list(loads)},
    }


def test_weights_are_percentages() -> None:
    assert sum(kind.weight for kind in MIX) == 100


@pytest.mark.parametrize("kind", MIX, ids=lambda kind: kind.name)
def test_a_read_names_only_what_is_known(kind: Kind) -> None:
    read = kind.make(random.Random(0), Known(["the-job"], ["the-workload"]))
    assert ("the-job" in read.path) == (kind.name in ("job", "trials of a job"))
    assert ("the-workload" in f"{read}") == ("workload" in kind.name or "model" in kind.name)


def test_a_percentile_of_reads() -> None:
    assert percentile([float(value) for value in range(101)], 99) == pytest.approx(99)
    assert percentile([7.0], 50) == 7
    assert percentile([], 99) == 0


def test_fast_reads_without_errors_miss_nothing() -> None:
    found = figures(load([5.0] * 100), load([99.0] * 100, half_open=500))
    assert missed(found) == []
    assert "missed" not in REPORT.render([found])


def test_slow_reads_and_events_that_were_missed_are_named() -> None:
    found = figures(load([5.0] * 100), load([5.0] * 50 + [300.0] * 50, half_open=500, missed=2))
    assert missed(found) == [
        "SQLite, 200/s, 500 half-open: 99th percentile is 300 ms, not below 100 ms",
        "SQLite, 200/s, 500 half-open: number of errors is 2, not 0",
    ]
    assert REPORT.render([found]).count("**missed**") == 2


def test_the_highest_rate_that_was_met_is_told() -> None:
    found = figures(load([5.0] * 100, rate=50.0), load([5.0] * 50 + [300.0] * 50, rate=100.0), load([300.0] * 100))
    assert missed(found) == ["SQLite, 200/s: 99th percentile is 300 ms, not below 100 ms"]
    assert ": 50 reads per second on SQLite." in REPORT.render([found])
    assert ": none on SQLite." in REPORT.render([figures(load([300.0] * 100))])


def test_half_open_connections_hold_nobody_up_at_any_rate() -> None:
    found = figures(load([300.0] * 100, rate=20.0), load([300.0] * 100, half_open=500, rate=20.0), load([5.0] * 100))
    assert missed(found) == ["SQLite, 20/s, 500 half-open: 99th percentile is 300 ms, not below 100 ms"]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request of a connection, by its path."""
    with contextlib.suppress(asyncio.IncompleteReadError):
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            path = head.split()[1]
            if "If-None-Match: one" in head:
                writer.write(b"HTTP/1.1 304 Not Modified\r\nETag: one\r\n\r\n")
            elif path == "/api/v1/closed":
                break
            elif path == "/api/v1/refused":
                writer.write(b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nfull")
            elif path == "/api/v1/said":
                length = int(head.partition("Content-Length: ")[2].split()[0])
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + (await reader.readexactly(length))[:2])
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nETag: one\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
                await writer.drain()
                await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")
    writer.close()


def test_a_generator_says_which_answers_its_users_have() -> None:
    async def sent() -> Found:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        async with server:
            users, found = Users(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), Found()
            for token, read in [
                ("a", Read("/job", {"n": 1})),
                ("a", Read("/job", {"n": 1})),
                ("a", Read("/job", {"n": 2})),
                ("b", Read("/job", {"n": 1})),
                ("a", Read("/said", {}, {"functions": []})),
                ("a", Read("/refused", {})),
                ("a", Read("/closed", {})),
                ("a", Read("/job", {"n": 2})),
            ]:
                await send(users, token, Kind(read.path, 1, MIX[0].make), read, time.perf_counter(), found)
            users.connections.close()
        return found

    found = own_loop.run(sent())
    assert {name: len(taken) for name, taken in found.kinds.items()} == {
        "/job": 5,
        "/said": 1,
        "/refused": 1,
        "/closed": 1,
    }
    assert found.unchanged == 2
    assert [error.split(":")[0] for error in found.errors] == ["/refused", "/closed"]
    assert "503 full" in found.errors[0]
