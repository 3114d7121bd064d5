"""Runs what is missing of a short comparison that tells the design space and the search apart.

On each workload, stock MetaSchedule (A) and Loopwright's search in TVM's space (T) and in its own (C) run in random
order, as in the benchmark `search`. Stops after the run in which the time is up; started again, it continues.
"""

from __future__ import annotations

import argparse

from benchmarks.runner import Raw
from benchmarks.search.run import compare
from benchmarks.search.workloads import WORKLOADS as KNOWN

SMOKE = ("--workloads", "SFM-1", "--trials", "8")
WORKLOADS = ("C2D-1", "SFM-1", "MM-512")
ARMS = ("A", "T", "C")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=45.0, help="when to stop")
    parser.add_argument("--workloads", nargs="+", choices=KNOWN, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--trials", type=int, default=128)


def run(options: argparse.Namespace, raw: Raw) -> None:
    compare(raw, ARMS, options.workloads, [0], options.trials, options.minutes)
