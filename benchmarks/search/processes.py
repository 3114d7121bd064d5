"""Runs an arm in a process of its own, with the code of one checkout and without PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.search.ours import Request
from benchmarks.search.run_record import ROOT


def run_module(
    module: str, arguments: Sequence[str], *, name: str, environment: dict[str, str], root: Path = ROOT
) -> bool:
    """Run ``python -m module`` with the code below ``root``, print how it went, and return whether it succeeded.

    TVM imports PyTorch if it is installed, which makes each of stock's builders start half a minute later. Loopwright's
    workers do not import it, and the arms cannot: a module that raises takes its place.
    """
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        Path(folder, "torch.py").write_text('raise ModuleNotFoundError("not part of the benchmark", name="torch")\n')
        path = os.pathsep.join([folder, str(root / "client"), str(root)])
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=root,
            env=os.environ | {"PYTHONPATH": path} | environment,
            capture_output=True,
            text=True,
        )
    print(f"{name}: {time.monotonic() - started:.0f} s, status {done.returncode}", flush=True)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
    return done.returncode == 0


def run_request(request: Request, *, name: str) -> bool:
    """Run one of Loopwright's arms, and return whether it succeeded. Its record is in the request's folder."""
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        path = Path(folder, "request.json")
        request.write(path)
        environment = tuner_environment(request.device_class.threads)
        return run_module("benchmarks.search.ours", [str(path)], name=name, environment=environment)


def tuner_environment(threads: int) -> dict[str, str]:
    """Return the thread settings of a process with Loopwright's loop, which are those of the service's jobs."""
    return {"TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
