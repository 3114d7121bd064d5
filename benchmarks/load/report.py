"""The report on the API under load."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.spread import percentile

ALLOWED_MS = 100.0
"""Of the 99th percentile of all reads of a load."""


def missed(figures: dict[str, Any]) -> list[str]:
    """Return what was missed, a sentence each."""
    return [
        f"{name}: {what} is {measured}, not {required}"
        for name, what, measured, required, met in _required(figures)
        if not met
    ]


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    processes = figures.get("processes", 1)
    return {name: figures[name] for name in ("jobs", "streams", "users", "half_open")} | {
        "processes": "one API process" if processes == 1 else f"{processes} API processes behind one port",
        "seconds": f"{figures['seconds']:g}",
        "trials": f"{figures['trials']:g}",
        "plural": "" if figures["trials"] == 1 else "s",
        "workloads": f"{figures['workloads']:,}",
        "met": ", ".join(f"{_met(loads)} on {database}" for database, loads in figures["databases"].items()),
        "requirements": table(
            ["", "measured", "required"],
            (
                (f"{what}, {name}", f"{measured}{'' if met else ', **missed**'}", required)
                for name, what, measured, required, met in _required(figures)
            ),
            right=True,
        ),
        "loads": table(_LOAD_HEADS, itertools.starmap(_load_row, _loads(figures))),
        "kinds": _kinds(figures),
    }


def _loads(figures: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each load with its name."""
    for database, loads in figures["databases"].items():
        for load in loads:
            count = load["half_open"]["connections"]
            yield f"{database}, {load['rate']:g}/s{f', {count} half-open' if count else ''}", load


def _required(figures: dict[str, Any]) -> Iterator[tuple[str, str, str, str, bool]]:
    """Yield load, what is required of it, what was measured, what is required, and whether that was met."""
    for name, load in _loads(figures):
        if load["rate"] < figures["rate"] and not load["half_open"]["connections"]:
            continue
        slowest, errors = percentile(_all(load), 99), _errors(load)
        yield name, "99th percentile", f"{slowest:.0f} ms", f"below {ALLOWED_MS:.0f} ms", slowest < ALLOWED_MS
        yield name, "number of errors", str(errors), "0", errors == 0


def _met(loads: Sequence[dict[str, Any]]) -> str:
    """Return the highest rate at which a database met what is required."""
    rates = [load["rate"] for load in loads if percentile(_all(load), 99) < ALLOWED_MS and not _errors(load)]
    return f"{max(rates):g} reads per second" if rates else "none"


def _errors(load: dict[str, Any]) -> int:
    streams = load["streams"]
    return len(load["reads"]["errors"]) + len(streams["errors"]) + int(streams["missed"])


def _all(load: dict[str, Any]) -> list[float]:
    return [value for values in load["reads"]["kinds"].values() for value in values]


_LOAD_HEADS = (
    "load", "reads", "p50", "p95", "p99", "slowest", "errors", "304", "sent late", "API", "others",
    "events", "event delay p50", "p99", "half-open connections opened",
)  # fmt: skip


def _load_row(name: str, load: dict[str, Any]) -> list[str]:
    reads, delays = _all(load), load["streams"]["delays"]
    held = load["half_open"]
    return [
        name,
        f"{len(reads):,}",
        *_spread(reads),
        str(len(load["reads"]["errors"])),
        f"{load['reads']['unchanged'] / max(1, len(reads)):.0%}",
        f"{percentile(load['reads']['late'], 99):.0f}",
        f"{load['api_cpu_share']:.0%}",
        f"{sum(load['cpu_shares'].values()):.0%}",
        f"{len(delays):,}",
        f"{percentile(delays, 50):.0f}",
        f"{percentile(delays, 99):.0f}",
        f"{held['opened']:,}" if held["connections"] else "",
    ]


def _spread(values: Sequence[float]) -> list[str]:
    return [*(f"{percentile(values, percent):.0f}" for percent in (50, 95, 99)), f"{max(values, default=0.0):.0f}"]


def _kinds(figures: dict[str, Any]) -> str:
    named = dict(_loads(figures))
    kinds = sorted({kind for load in named.values() for kind in load["reads"]["kinds"]})
    heads = ["read", *(f"{name}: p50, p95, p99, slowest" for name in named)]
    rows = [
        [kind, *(", ".join(_spread(load["reads"]["kinds"].get(kind, []))) for load in named.values())] for kind in kinds
    ]
    return table(heads, rows)


REPORT = Report("load", Path(__file__).with_name("report.md.in"), values)
