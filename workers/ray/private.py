"""The parts of Ray that have no public interface. No other file uses them, so a new version of Ray is checked here."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ray
from ray._private import parameter, ray_constants, services
from ray._raylet import GcsClient  # type: ignore[attr-defined]

_LOOK_SECONDS = 0.2
"""Between two looks for a raylet that starts. Not tuned."""

_AGENTS = ("--dashboard_agent_command", "--runtime_env_agent_command")
_AGENTS_PORTS = (
    "dashboard_agent_listen_port", "metrics_agent_port", "metrics_export_port", "runtime_env_agent_port",
)  # fmt: skip
_NO_PORT = "-1"
"""What an agent writes that offers nothing."""
_NO_AGENT = subprocess.list2cmdline([sys.executable, "-I", "-S", str(Path(__file__).with_name("no_agent.py"))])


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
def lean() -> Iterator[None]:
    """Have `ray.init` start no autoscaler, no forwarding of logs, no part of its dashboard and no agents.

    They have 300 MB, and a raylet waits for its agents before it starts any worker. Nothing here uses them: one reports
    to the dashboard, the other installs packages for tasks. There is no option for any of this; that for the dashboard
    starts a smaller one.
    """
    params = functools.partial(parameter.RayParams, no_monitor=True, include_log_monitor=False)
    with (
        _replaced(parameter, "RayParams", params),
        _replaced(services, "start_api_server", lambda *_, **__: ("", None)),
        _replaced(services, "start_ray_process", functools.partial(_start_without_agents, services.start_ray_process)),
    ):
        yield


def _start_without_agents(start: Callable[..., Any], command: list[str], kind: str, **options: Any) -> Any:
    """Start a process of Ray. A raylet demands commands of agents, and waits for files with their ports."""
    if kind == ray_constants.PROCESS_TYPE_RAYLET:
        given = dict(option.split("=", 1) for option in command if "=" in option)
        for port in _AGENTS_PORTS:
            Path(given["--session_dir"], f"{port}_{given['--node_id']}").write_text(_NO_PORT)
        command = [
            f"{name}={_NO_AGENT}" if (name := option.partition("=")[0]) in _AGENTS else option for option in command
        ]
    return start(command, kind, **options)


@contextlib.contextmanager
def patient(goes_on: Callable[[], bool]) -> Iterator[None]:
    """Have `ray.init` wait for its raylet while ``goes_on`` says so. By itself it waits for 30 s, a constant."""
    get_node = services.get_node

    def found(*arguments: object) -> object:
        while True:
            try:
                return get_node(*arguments)
            except RuntimeError:  # the raylet has not registered yet
                if not goes_on():
                    raise
            time.sleep(_LOOK_SECONDS)

    with _replaced(services, "get_node", found):
        yield


@contextlib.contextmanager
def _replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
