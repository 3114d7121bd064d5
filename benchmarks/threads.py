"""Time parallel loops on Loopwright's pool of threads beside those of TVM's runtime, in turn in one process.

.venv/bin/python -m benchmarks.threads --busy 0 2 4

Each program has loops that multiply and add, one behind the other. Processes that are busy compete for the cores. The
output is a table, whose extremes docs/guides/exporting.md has.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import te
from tvm.s_tir import Schedule

from benchmarks.busy import busy
from loopwright.codegen.host import pool
from loopwright.codegen.host.threads import set_defaults

PROGRAMS = ((10, 8, 256), (10, 64, 64), (10, 64, 256), (10, 64, 2048), (2, 256, 4096))
"""Loops, and the rows and columns of the numbers that each of them reads; the rows are parallel."""
TURN_SECONDS = 0.1
REST_SECONDS = 0.15
"""Before each turn: threads of TVM's pool wait busily for 0.1 s after their work, on the others' cores."""


def compiled(loops: int, rows: int, columns: int, path: Path) -> Path:
    """Write a library with so many parallel loops, each of which reads what the last one wrote."""
    last = first = te.placeholder((rows, columns), name="x")
    for number in range(loops):
        last = multiplied(last, f"loop{number}")
    schedule = Schedule(tvm.IRModule({"main": te.create_prim_func([first, last])}))
    for number in range(loops):
        i, j = schedule.get_loops(schedule.get_sblock(f"loop{number}"))
        schedule.parallel(i)
        schedule.vectorize(schedule.split(j, [None, 8])[1])
    tvm.compile(schedule.mod, target="llvm").export_library(str(path))
    return path


def multiplied(x: te.Tensor, name: str) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: x[i, j] * 1.5 + 0.5, name=name)


def times(calls: Sequence[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Return the microseconds of each call: in each round, first the one is called again and again, then the other."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, samples in zip(calls, found, strict=True):
            time.sleep(REST_SECONDS)
            call()
            until = time.perf_counter() + TURN_SECONDS
            while (began := time.perf_counter()) < until:
                call()
                samples.append(1e6 * (time.perf_counter() - began))
    return found


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--busy", type=int, nargs="+", default=[0], help="numbers of busy processes (default: 0)")
    options.add_argument("--rounds", type=int, default=10, help="turns of each pool (default: 10)")
    return options


def main() -> None:
    options = parser().parse_args()
    set_defaults()
    print("| loops | busy processes | TVM's pool: median, mean | Loopwright's pool: median, mean | ratio of medians |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        paths = [compiled(*each, Path(folder, f"{number}.so")) for number, each in enumerate(PROGRAMS)]
        theirs = [tvm.runtime.load_module(str(path)) for path in paths]
        pool.install()  # for programs that are loaded from now on: the same ones, in other files
        ours = [tvm.runtime.load_module(shutil.copy(path, f"{path}.copy.so")) for path in paths]
        for processes in options.busy:
            for (loops, rows, columns), *modules in zip(PROGRAMS, theirs, ours, strict=True):
                with busy(processes):
                    print(row(f"{loops} over {rows}x{columns}", processes, modules, (rows, columns), options.rounds))


def row(name: str, processes: int, modules: Sequence[Any], shape: tuple[int, int], rounds: int) -> str:
    """Return the line of the table for a program, which is loaded for each pool."""
    arguments = [tvm.runtime.tensor(np.zeros(shape, np.float32)) for _ in range(2)]
    samples = times([partial(module["main"], *arguments) for module in modules], rounds)
    medians = [statistics.median(each) for each in samples]
    cells = [f"{median:.1f} µs, {statistics.mean(each):.1f} µs" for median, each in zip(medians, samples, strict=True)]
    return f"| {name} | {processes} | {cells[0]} | {cells[1]} | {medians[0] / medians[1]:.2f} |"


if __name__ == "__main__":
    main()
