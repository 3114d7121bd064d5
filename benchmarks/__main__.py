"""Runs a benchmark, or writes its report.

    .venv/bin/python -m benchmarks NAME [--smoke] [OPTION ...]
    .venv/bin/python -m benchmarks NAME --pack

``python -m benchmarks`` names the benchmarks, and ``python -m benchmarks NAME --help`` the options of one. With
``--pack``, the raw results of the last run replace the packed ones, and the report is written; with ``--report``, the
report is written from the packed results.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import runner
from benchmarks.report import RAW, Report

PACKAGES = {
    name: f"benchmarks.{package}"
    for name, package in {
        "main-job": "main_job",
        "search": "search",
        "ablation": "search.ablation",
        "prior": "prior",
        "regression": "search.regression",
        "quality": "quality",
        "nets": "nets",
        "decode": "decode",
        "models": "models",
        "shapes": "shapes",
        "gpu": "gpu",
        "leaderboard": "leaderboard",
        "database": "database",
        "calls": "calls",
        "scale": "scale",
        "controllers": "controllers",
        "load": "load",
        "gates": "gates",
        "certificates": "certificates",
    }.items()
}
"""They are imported by name because each needs much that others do not. Each has a module ``run``:

- ``add_options(parser)`` adds its options.
- ``SMOKE`` are the options of a run of a minute or two, which shows that the benchmark works.
- ``run(options, raw)`` runs what has no line in ``raw`` yet. It returns the exit status, or what was missed; None if
  all is well.

All but ``gpu``, whose page is written by hand, have a module ``report`` with a `Report`."""


def parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the benchmark that the arguments name, or one that names the benchmarks."""
    if arguments and arguments[0] in PACKAGES:
        return runner.parser(arguments[0], importlib.import_module(f"{PACKAGES[arguments[0]]}.run"))
    found = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    found.add_argument("name", choices=PACKAGES)
    return found


def reporting(name: str) -> argparse.ArgumentParser:
    """Return the parser of what writes a report and runs nothing. It does not import the benchmark."""
    found = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", allow_abbrev=False)
    what = found.add_mutually_exclusive_group(required=True)
    what.add_argument("--pack", action="store_true")
    what.add_argument("--report", action="store_true")
    found.add_argument("--output", type=Path, default=RAW / f"{name}.jsonl")
    return found


def report_of(name: str) -> Report:
    found: Report = importlib.import_module(f"{PACKAGES[name]}.report").REPORT
    return found


def main() -> None:
    name, *arguments = sys.argv[1:] or ["--help"]
    if name not in PACKAGES:
        parser().parse_args([name, *arguments])
    elif {"--pack", "--report"} & set(arguments):
        options = reporting(name).parse_args(arguments)
        report_of(name).write(runner.Raw(options.output).lines() if options.pack else None)
    else:
        raw, outcome = runner.run(name, importlib.import_module(f"{PACKAGES[name]}.run"), arguments)
        if name != "gpu" and (lines := list(report_of(name).packed(raw.lines()))):
            print(report_of(name).render(lines))
        sys.exit(outcome)


if __name__ == "__main__":
    main()
