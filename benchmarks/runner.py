"""Runs a benchmark: its options, its raw results, which survive an interruption, and the conditions of a run.

A benchmark appends its raw results to ``benchmarks/results/NAME.jsonl``, which git ignores, one JSON object a line. One
that is started again continues with what has no line yet. `benchmarks.report` packs the lines and writes the report.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.code import this_code
from benchmarks.report import RAW

Line = dict[str, Any]
_FEATURES = (
    "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8",
)  # fmt: skip


class Raw:
    """The raw results of a benchmark."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[Line]:
        """Return the lines of the file; none if it does not exist. A line that was cut short is passed over."""
        found = []
        for text in self.path.read_text().splitlines() if self.path.exists() else ():
            try:
                found.append(json.loads(text))
            except json.JSONDecodeError:
                continue
        return found

    def append(self, line: Line) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def replace(self, line: Line) -> None:
        """Keep this line only: the figures of a benchmark that has a single record."""
        self.path.unlink(missing_ok=True)
        self.append(line)

    def latest(self, *names: str) -> dict[tuple[Any, ...], Line]:
        """Return the last line for each combination of the fields' values; lines without these fields are left out."""
        lines = (line for line in self.lines() if all(name in line for name in names))
        return latest(lines, *names)


def latest(lines: Iterable[Line], *names: str) -> dict[tuple[Any, ...], Line]:
    """Return the last line for each combination of the fields' values."""
    return {tuple(line[name] for name in names): line for line in lines}


def parser(name: str, benchmark: ModuleType) -> argparse.ArgumentParser:
    """Return the parser of ``python -m benchmarks NAME``."""
    found = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=benchmark.__doc__)
    found.add_argument("--output", type=Path, default=RAW / f"{name}.jsonl", help="raw results (default: %(default)s)")
    found.add_argument("--pack", action="store_true", help="run nothing: pack the raw results, and write the report")
    found.add_argument("--report", action="store_true", help="run nothing: write the report from the packed results")
    found.add_argument("--smoke", action="store_true", help="a run of a minute or two, into results/smoke")
    benchmark.add_options(found)
    return found


def run(name: str, benchmark: ModuleType, arguments: Sequence[str]) -> tuple[Raw, str | int | None]:
    """Run a benchmark with the options of a command line; return its results, and its exit status or what it missed."""
    if "--smoke" in arguments:
        arguments = ["--output", str(RAW / "smoke" / f"{name}.jsonl"), *benchmark.SMOKE, *arguments]
    options = parser(name, benchmark).parse_args(arguments)
    if options.smoke:
        options.output.unlink(missing_ok=True)
    raw = Raw(options.output)
    outcome = benchmark.run(options, raw)
    print(raw.path)
    return raw, outcome


def conditions(threads: int | None = None) -> Line:
    """Return CPU model and features, threads, load average, date and the digest of Loopwright's code."""
    model, flags = cpu(Path("/proc/cpuinfo").read_text())
    return {
        "cpu": model,
        "features": [feature for feature in _FEATURES if feature in flags],
        "threads": threads or len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "code": this_code(),
    }


def cpu(information: str) -> tuple[str, set[str]]:
    """Return the model and the flags of the first processor of ``/proc/cpuinfo``."""
    fields = dict(line.split(":", 1) for line in information.partition("\n\n")[0].splitlines() if ":" in line)
    named = {name.strip(): value.strip() for name, value in fields.items()}
    return named["model name"], set(named["flags"].split())
