"""Measures the service's own work for many simulated devices, and how real jobs share this machine."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.runner import Raw, conditions
from benchmarks.scale import sharing
from benchmarks.scale.crowd import Crowd
from benchmarks.scale.devices import Devices
from benchmarks.services import DATABASES, embedded, scratch

SMOKE = ("--jobs", "2", "--devices", "4", "--seconds", "3", "--measurement", "0.2", "--small-jobs", "2")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, default=50, help="that search for the simulated devices")
    parser.add_argument("--devices", type=int, nargs="+", default=[25, 50, 100, 200])
    parser.add_argument("--seconds", type=float, default=40.0, help="for each number of devices")
    parser.add_argument("--measurement", type=float, default=1.0, help="seconds of a simulated measurement")
    parser.add_argument("--small-jobs", type=int, default=10, help="at once beside a large one")
    parser.add_argument("--port", type=int, default=8098)


def run(options: argparse.Namespace, raw: Raw) -> None:
    sizes = {"jobs": options.jobs, "measurement_s": options.measurement}
    figures: dict[str, Any] = {**sizes, "conditions": conditions(), "databases": {}}
    with embedded(options.port) as client:
        figures["sharing"] = sharing.measured(client, options.small_jobs)
    with scratch() as folder:
        for name, database in DATABASES.items():
            with database(folder) as url:
                devices = Devices(options.measurement)
                devices.resize(options.devices[0])
                with Crowd(url, options.jobs, devices) as crowd:
                    crowd.wait_until_all_search()
                    figures["databases"][name] = crowd.measured(options.devices, options.seconds)
    raw.replace(figures)
