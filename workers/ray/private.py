"""The parts of Ray that have no public interface. No other file uses them, so a new version of Ray is checked here."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

import ray
from ray._private import parameter, ray_constants
from ray._raylet import GcsClient  # type: ignore[attr-defined]


def gcs() -> GcsClient:
    """Return the client of the head (GCS) of the cluster that this process is connected to."""
    return ray._private.worker.global_worker.gcs_client


def gcs_at(address: str) -> GcsClient:
    """Return a client of the head at an address. The process need not be connected to it."""
    return GcsClient(address=address)


def gcs_address() -> tuple[str, int]:
    """Return host and port of the head."""
    host, _, port = ray._private.worker._global_node.gcs_address.rpartition(":")
    return host.strip("[]"), int(port)


def raylet_address() -> tuple[str, int]:
    """Return host and port of the raylet of this machine."""
    node = ray._private.worker._global_node
    return node.node_ip_address, node.node_manager_port


def logs_folder() -> Path:
    """Return the folder of the logs of Ray's processes on this machine."""
    return Path(ray._private.worker._global_node.get_logs_dir_path())


def bind_to_loopback() -> None:
    """Have the processes that `ray.init` starts bind to loopback, as `workers.ray.environment.LOOPBACK_ONLY` does.

    Ray reads the variable when it is imported.
    """
    ray_constants.ENABLE_RAY_CLUSTER = False


@contextlib.contextmanager
def without_monitors() -> Iterator[None]:
    """Have `ray.init` start no autoscaler and no forwarding of logs, for which it has no option: 140 MB for nothing."""
    made = parameter.RayParams
    parameter.RayParams = functools.partial(made, no_monitor=True, include_log_monitor=False)
    try:
        yield
    finally:
        parameter.RayParams = made
