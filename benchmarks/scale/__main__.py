"""Measures the service's own work for many simulated devices, and how real jobs share this machine.

.venv/bin/python -m benchmarks.scale [--jobs 50] [--devices 25 50 100 200] [--seconds 40]

Takes a quarter of an hour. Figures go to benchmarks/results/scale.json. `python -m benchmarks.scale.report --pack`
packs them and writes the report.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from benchmarks.leaderboard.__main__ import postgresql, sqlite
from benchmarks.results import write_raw
from benchmarks.scale import sharing
from benchmarks.scale.crowd import Crowd
from benchmarks.scale.devices import Devices
from benchmarks.scale.report import NAME, text

_SMALL_JOBS = 10


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--jobs", type=int, default=50, help="that search for the simulated devices")
    parser.add_argument("--devices", type=int, nargs="+", default=[25, 50, 100, 200])
    parser.add_argument("--seconds", type=float, default=40.0, help="for each number of devices")
    parser.add_argument("--measurement", type=float, default=1.0, help="seconds of a simulated measurement")
    parser.add_argument("--port", type=int, default=8098)
    return parser


def main() -> None:
    options = parser().parse_args()
    figures: dict[str, Any] = {
        "jobs": options.jobs,
        "measurement_s": options.measurement,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_before": os.getloadavg()[0],
        "databases": {},
    }
    with sharing.service(options.port) as client:
        figures["sharing"] = sharing.measured(client, _SMALL_JOBS)
    print(json.dumps(figures["sharing"], indent=2), flush=True)
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        databases: dict[str, AbstractContextManager[str]] = {
            "SQLite": sqlite(Path(scratch)),
            "PostgreSQL": postgresql(),
        }
        for name, database in databases.items():
            with database as url:
                devices = Devices(options.measurement)
                devices.resize(options.devices[0])
                with Crowd(url, options.jobs, devices) as crowd:
                    crowd.wait_until_all_search()
                    figures["databases"][name] = crowd.measured(options.devices, options.seconds)
            print(name, json.dumps(figures["databases"][name], indent=2), flush=True)
    print(text(figures))
    print(write_raw(NAME, figures))


if __name__ == "__main__":
    main()
