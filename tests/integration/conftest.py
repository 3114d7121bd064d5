"""One Ray cluster on this machine for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ray

from workers.ray.cluster import Cluster, Offer, connect
from workers.walls.levels import Policy


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    connect(None, tmp_path_factory.mktemp("data"), Policy.PREFER)
    yield Cluster(Policy.PREFER)
    ray.shutdown()


@pytest.fixture(scope="session")
def offer(cluster: Cluster) -> Offer:
    return next(offer for offer in cluster.reconcile() if offer.device == "cpu")
