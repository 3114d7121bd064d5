"""The two sides of the check: a checkout with a cluster of its own, whose code is asked for runs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.code import ROOT
from benchmarks.search.ours import Request, ask
from tuner.types import DeviceClass

_HOST = Path(__file__).with_name("host.py")


@dataclass(frozen=True, slots=True)
class Side:
    """Code below ``root``, and the cluster that runs its workers."""

    name: str
    root: Path
    device_class: DeviceClass
    address: str
    builders: Any
    """As the side's own version names them."""
    measurer: str
    environment: dict[str, str]

    def run(self, workload: str, seed: int, *, trials: int, machine: str, folder: Path) -> None:
        """Tune a workload cold. The record is in ``folder``."""
        request = Request(
            arm=self.name,
            variant="C",
            workload=workload,
            seed=seed,
            machine=machine,
            trials=trials,
            folder=str(folder),
            device_class=self.device_class,
            address=self.address,
            builders=self.builders,
            measurer=self.measurer,
        )
        ask(request, folder, environment=self.environment, root=self.root)


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary worktree of this repository."""
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        root = Path(scratch, "base")
        subprocess.run(["git", "worktree", "add", "--detach", root, commit], cwd=ROOT, check=True, capture_output=True)
        try:
            yield root
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", root], cwd=ROOT, check=True, capture_output=True)


@contextlib.contextmanager
def side(name: str, root: Path) -> Iterator[Side]:
    """Start a cluster with the workers of a checkout. The cluster ends with the context."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "client"), str(root)])}
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        host = subprocess.Popen(
            [sys.executable, _HOST, scratch],
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with host:
            assert host.stdin is not None
            assert host.stdout is not None
            try:
                fields: dict[str, Any] = json.loads(host.stdout.readline())
                device_class = fields["device_class"]
                yield Side(
                    name=name,
                    root=root,
                    device_class=DeviceClass(**device_class | {"features": tuple(device_class["features"])}),
                    address=fields["address"],
                    builders=fields["builders"],
                    measurer=fields["measurer"],
                    environment=fields["environment"],
                )
            finally:
                host.stdin.close()
                host.wait(timeout=60)
