"""The two sides of the check: a checkout with a cluster of its own, whose code is asked for runs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray

from benchmarks.code import ROOT
from benchmarks.search.ours import Request, ask
from benchmarks.services import offered, scratch
from tuner.types import DeviceClass
from workers.ray.fleet import RayFleet

_HOST = Path(__file__).with_name("host.py").relative_to(ROOT)
"""The other checkout runs its own: what it imports is its own, too."""
_PIPE = subprocess.PIPE


@dataclass(frozen=True, slots=True)
class Side:
    """Code below ``root``, and the cluster of its workers: builders and measurer as its own version names them."""

    root: Path
    device_class: DeviceClass
    address: str
    builders: Any
    measurer: str
    environment: dict[str, str]

    def run(self, request: Request, folder: Path) -> None:
        """Tune as a request says whose cluster is another's. The record is in ``folder``."""
        here = {name: getattr(self, name) for name in ("device_class", "address", "builders", "measurer")}
        ask(replace(request, **here), folder, environment=self.environment, root=self.root)


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary worktree of this repository."""
    with scratch() as folder:
        root = folder / "base"
        subprocess.run(["git", "worktree", "add", "--detach", root, commit], cwd=ROOT, check=True, capture_output=True)
        try:
            yield root
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", root], cwd=ROOT, check=True, capture_output=True)


@contextlib.contextmanager
def this_side() -> Iterator[tuple[Side, RayFleet]]:
    """Start a cluster in this process with the workers of its own code. The fleet races programs on it."""
    with offered() as offer:
        address = ray.get_runtime_context().gcs_address
        yield (
            Side(ROOT, offer.device_class, address, offer.builders, offer.measurer, {}),
            RayFleet(offer.device_class.target_json, offer.builders, {offer.measurer: "local"}),
        )


@contextlib.contextmanager
def other_side(root: Path) -> Iterator[Side]:
    """Start a cluster with the workers of another checkout. The cluster ends with the context."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "client"), str(root)])}
    with scratch() as folder:
        command = [sys.executable, str(root / _HOST), str(folder)]
        with subprocess.Popen(command, cwd=root, env=environment, text=True, stdin=_PIPE, stdout=_PIPE) as host:
            assert host.stdin is not None
            assert host.stdout is not None
            try:
                fields: dict[str, Any] = json.loads(host.stdout.readline())
                features = tuple(fields["device_class"]["features"])
                device_class = DeviceClass(**fields["device_class"] | {"features": features})
                yield Side(root, **fields | {"device_class": device_class})
            finally:
                host.stdin.close()
                host.wait(timeout=60)
