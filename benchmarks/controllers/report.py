"""The report on several controllers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table

_STEPS = ("devices", "busy", "trials/s", "controllers' cores", "database's cores", "ms a trial", "leases lost")
_CALLS = ("call", "devices", "each second", "p50 ms", "p99 ms", "longest ms")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    steps = figures["steps"]
    names = list(steps[-1]["calls"])
    return {
        "controllers": figures["controllers"],
        "jobs": f"{figures['jobs']:,}",
        "trials": figures["trials"],
        "measurement": f"{figures['measurement']:g}",
        "seconds": f"{figures['seconds']:g}",
        "steps": table(_STEPS, (_step(step) for step in steps), right=True),
        "calls": table(
            _CALLS, (_call(name, step) for name in names for step in steps if name in step["calls"]), right=True
        ),
        "queued": f"{steps[-1]['queued']:,}",
        "running": steps[-1]["running"],
    }


def _step(step: dict[str, Any]) -> tuple[object, ...]:
    cores = step["controller_cores"] + step["database_cores"]
    return (
        f"{step['devices']:,}",
        f"{100 * step['busy']:.0f} %",
        f"{step['trials_per_s']:.1f}",
        f"{step['controller_cores']:.2f}",
        f"{step['database_cores']:.2f}",
        f"{1e3 * cores / step['trials_per_s']:.1f}" if step["trials_per_s"] else "",
        step["leases_lost"],
    )


def _call(name: str, step: dict[str, Any]) -> tuple[object, ...]:
    found = step["calls"][name]
    times = (f"{found[each]:.1f}" for each in ("p50_ms", "p99_ms", "max_ms"))
    return (name, f"{step['devices']:,}", f"{found['per_s']:.1f}", *times)


REPORT = Report("controllers", Path(__file__).with_name("report.md.in"), values)
