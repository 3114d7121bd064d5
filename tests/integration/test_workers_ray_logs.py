"""The logs of the embedded Ray are limited, and it has no more processes than it needs."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import ray

from tests.support.waiting import wait_for
from workers.ray import private
from workers.ray.cluster import Cluster

_FILE_BYTES = 10 * 2**20
_WRITTEN_BYTES = 25 * 2**20


def test_what_an_actor_prints_is_rotated(cluster: Cluster) -> None:
    @ray.remote(num_cpus=0)
    def chatter() -> str:
        for _ in range(_WRITTEN_BYTES // 1000):
            print("x" * 999)
        return str(private.logs_folder())

    folder = Path(ray.get(chatter.remote()))
    rotated = wait_for("a second rotated file", lambda: [*folder.glob("worker-*.out.2")] or None, 30)
    assert all(path.stat().st_size <= _FILE_BYTES for path in [*rotated, *folder.glob("worker-*.out*")])


def test_no_agent_of_ray_runs(cluster: Cluster) -> None:
    started = [" ".join(process.cmdline()) for process in psutil.Process().children(recursive=True)]
    agents = [command for command in started if command.startswith(sys.executable) and "agent" in command]
    assert len(agents) >= 2  # those of another cluster of this process, too
    assert all("no_agent.py" in command for command in agents), agents
