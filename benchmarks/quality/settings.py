"""What a run of the benchmark was asked for, and the folders that it uses."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks.quality.engines import ENGINES
from benchmarks.report import RAW

FOLDER = RAW / "quality"


@dataclass(frozen=True, slots=True)
class Settings:
    """One run.

    Attributes:
        rivals: The Python interpreter of the rivals' environment.
        threads: Of every engine. The benchmark and all of its processes are confined to as many cores.
        trials: Trials of a single operator, and of stock MetaSchedule for it.
        model_trials: Trials of a model at most.
        model_seconds: Seconds of search of a model at most.
        processes: Of each engine and case, one after another.
        rounds: Samples of each process.
        engines: Names of the engines that are timed.
        data_dir: The service's database and logs, which outlive the run.
        lock: A file to lock while times are taken, for machines that others use too.
    """

    rivals: Path
    threads: int
    trials: int
    model_trials: int
    model_seconds: float
    processes: int
    rounds: int
    engines: list[str]
    data_dir: Path
    port: int
    lock: Path | None = None

    @property
    def shared(self) -> Path:
        """What all engines are given, a folder a case."""
        return FOLDER / "shared"

    @property
    def thread_environment(self) -> dict[str, str]:
        """Thread counts of the engines that read them from the environment. Loopwright's process is not given them."""
        return {name: str(self.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `Settings` to a parser."""
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--rivals", type=Path, default=Path(sys.executable), help="Python with the rivals (default: this one)"
    )
    parser.add_argument("--threads", type=int, default=cores, help=f"of every engine (default: {cores}, all cores)")
    parser.add_argument("--trials", type=int, default=128, help="of a single operator (default 128)")
    parser.add_argument("--model-trials", type=int, default=4096, help="of a model at most (default 4096)")
    parser.add_argument("--model-seconds", type=float, default=600.0, help="of search of a model (default 600)")
    parser.add_argument("--processes", type=int, default=2, help="of each engine and case (default 2)")
    parser.add_argument("--rounds", type=int, default=6, help="of samples in each process (default 6)")
    parser.add_argument(
        "--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES), metavar="ENGINE", help="time these alone"
    )
    parser.add_argument(
        "--data-dir", type=Path, default=FOLDER / "service", help="the service's database, kept between runs"
    )
    parser.add_argument("--port", type=int, default=8098, help="of the service (default 8098)")
    parser.add_argument("--lock", type=Path, help="file to lock while times are taken, for shared machines")


def read(options: argparse.Namespace) -> Settings:
    """Return the settings of parsed options."""
    given = {each.name: getattr(options, each.name) for each in fields(Settings)}
    # Not resolved: the interpreter of a virtual environment is a link.
    return Settings(**given | {"rivals": options.rivals.absolute(), "data_dir": options.data_dir.absolute()})
