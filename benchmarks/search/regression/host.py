"""Starts a local cluster with the workers of the code on PYTHONPATH, and keeps it until its input ends.

    python benchmarks/search/regression/host.py SCRATCH < PIPE

Prints one line of JSON: the offer of this machine's CPU, and the environment that processes need to join the cluster.
Runs as a file of the checkout whose workers it starts, which may be older than the benchmark.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import ray

from workers.ray.cluster import Cluster, connect
from workers.walls.levels import Policy


def main() -> None:
    connect(None, Path(sys.argv[1]), Policy.PREFER)
    offer = next(offer for offer in Cluster(Policy.PREFER).reconcile() if offer.device == "cpu")
    line = {
        "device_class": asdict(offer.device_class),
        "address": ray.get_runtime_context().gcs_address,
        "builders": offer.builders,
        "measurer": offer.measurer,
        "environment": {name: value for name, value in os.environ.items() if name.startswith("RAY_")},
    }
    print(json.dumps(line), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
