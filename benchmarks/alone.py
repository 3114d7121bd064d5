"""Runs a module in a process of its own, with the code of one checkout and without PyTorch."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.code import ROOT


def run_module(
    module: str,
    arguments: Sequence[str],
    *,
    environment: dict[str, str],
    root: Path = ROOT,
    limit_s: float | None = None,
) -> bool:
    """Run ``python -m module`` with the code below ``root``, and return whether it succeeded in its time.

    TVM imports PyTorch if it is installed, which makes each of stock's builders start half a minute later. Loopwright's
    workers do not import it, and the module cannot: a module that raises takes its place.
    """
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        Path(folder, "torch.py").write_text('raise ModuleNotFoundError("not part of the benchmark", name="torch")\n')
        path = os.pathsep.join([folder, str(root / "client"), str(root)])
        with Path(folder, "log").open("w+") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=root,
                env=os.environ | {"PYTHONPATH": path} | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(limit_s)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # and all that it started
                status = process.wait()
            if status > 0:
                log.seek(0)
                print(log.read()[-3000:], file=sys.stderr)
    return status == 0


def threads_of_stock(threads: int) -> dict[str, str]:
    """Return the thread settings of stock: by itself, TVM's runtime takes half of a virtual machine's cores."""
    return {name: str(threads) for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS")}


def threads_of_tuner(threads: int) -> dict[str, str]:
    """Return the thread settings of a process with Loopwright's loop, which are those of the service's jobs."""
    return {"TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
