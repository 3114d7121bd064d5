"""The Ray cluster: starting or joining it, and keeping a measurer a device and some builders on every node.

Actors are named and detached, so that any controller finds those that another one made, and they outlive it in a
cluster. Ray restarts them where they die.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tuner.types import Activity, DeviceClass
from workers.actors import CONTROL, Builder, Measurer
from workers.warm_child import WarmChild

NAMESPACE = "loopwright"
_OBJECT_STORE_BYTES = 256 * 2**20
_DETECT_SECONDS = 60.0


log = logging.getLogger("loopwright.cluster")


@dataclass(frozen=True, slots=True)
class Offer:
    """One device of one node, with the actors that serve it."""

    id: str
    host: str
    device: str
    device_class: DeviceClass
    measurer: str
    builders: tuple[str, ...]


def connect(address: str | None, data_dir: Path) -> None:
    """Join the cluster at ``address``, or start one on this machine where it is None.

    Raises ConnectionError where no cluster answers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Metrics and log forwarding would cost cores that are timed.
    os.environ.setdefault("RAY_enable_metrics_collection", "0")
    # Ray runs its workers at a low priority; a timing must not give way to whatever else runs.
    os.environ.setdefault("RAY_worker_niceness", "0")
    if address is not None:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
        return
    _private_token(data_dir)
    try:
        _start_local()
    except RuntimeError as error:
        # Ray gives its own processes half a minute, which a machine that is busy enough outlasts.
        log.warning("Ray did not start (%s); trying once more", error)
        ray.shutdown()
        _start_local()


def _start_local() -> None:
    ray.init(
        address="local",
        namespace=NAMESPACE,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=_OBJECT_STORE_BYTES,
        configure_logging=False,
    )


def _private_token(data_dir: Path) -> None:
    """Ray's own token file is world-readable; the embedded cluster gets one that is not."""
    path = data_dir / "ray_token"
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(path)


class Cluster:
    """Keeps actors on every node."""

    def __init__(self) -> None:
        self._offers: dict[str, list[Offer]] = {}
        self._used: dict[str, tuple[float, float]] = {}

    def reconcile(self) -> list[Offer]:
        """Offers of all live nodes that have CPUs to give; a node that is new gets its actors first.

        A node that is lost on the way is left out, and tried again the next time if it is back.
        """
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")}
        for gone in set(self._offers) - set(alive):
            del self._offers[gone]
        fresh = {node_id: node for node_id, node in alive.items() if node_id not in self._offers}
        detecting = {node_id: _detect.options(**_on(node_id)).remote() for node_id in fresh}
        for node_id, node in fresh.items():
            try:
                self._offers[node_id] = _equip(node, ray.get(detecting[node_id]))
            except ray.exceptions.RayError as error:
                log.warning("node %s could not be equipped: %s", node["NodeManagerHostname"], error)
        return [offer for offers in self._offers.values() for offer in offers]

    def activity(self, timeout: float) -> dict[str, Activity]:
        """What each offer's actors are at, by offer id; without those that do not answer within `timeout` seconds."""
        now = time.time()
        asked: dict[str, Any] = {}
        for offer in (offer for offers in self._offers.values() for offer in offers):
            for name in (offer.measurer, *offer.builders):
                # A node that has just gone takes its actors' names along.
                with contextlib.suppress(ValueError):
                    asked[name] = ray.get_actor(name, NAMESPACE).ping.remote()
        if not asked:
            return {}
        answered, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=timeout)
        said: dict[str, dict[str, Any]] = {}
        for name, reference in asked.items():
            with contextlib.suppress(ray.exceptions.RayError):
                if reference in answered:
                    said[name] = ray.get(reference)
        found = {}
        for offer in (offer for offers in self._offers.values() for offer in offers):
            if (slot := said.get(offer.measurer)) is not None:
                busy = sum(said[name]["busy"] for name in offer.builders if name in said)
                found[offer.id] = Activity(
                    builders_busy=busy,
                    slot_since=None if slot["since"] is None else datetime.fromtimestamp(slot["since"], UTC),
                    slot_trial_id=slot["trial"],
                    slot_use=self._use(offer.id, now, slot["used"]),
                )
        return found

    def _use(self, offer_id: str, now: float, used: float) -> float | None:
        """Share of the time since it was last asked; None the first time, and after the actor was restarted."""
        before = self._used.get(offer_id)
        self._used[offer_id] = (now, used)
        if before is None or used < before[1] or now <= before[0]:
            return None
        return min(1.0, (used - before[1]) / (now - before[0]))

    def ping(self, offer: Offer, timeout: float) -> bool:
        """Whether the offer's measurer answers."""
        try:
            ray.get(ray.get_actor(offer.measurer, NAMESPACE).ping.remote(), timeout=timeout)
        except (ray.exceptions.RayError, ValueError):
            return False
        return True


def _on(node_id: str) -> dict[str, Any]:
    """Options that pin a task or an actor to a node. It takes no logical CPU: the host lock governs the real ones."""
    return {"num_cpus": 0, "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id, soft=False)}


@ray.remote(max_retries=2)
def _detect() -> list[dict[str, Any]]:
    child = WarmChild(["workers.detect"])
    try:
        devices: list[dict[str, Any]] = child.call("workers.detect:detect", {}, _DETECT_SECONDS)
    finally:
        child.close()
    return devices


def _equip(node: dict[str, Any], devices: list[dict[str, Any]]) -> list[Offer]:
    node_id, host = node["NodeID"], node["NodeManagerHostname"]
    cores = next(device["cores"] for device in devices if device["device"] == "cpu")
    builders = tuple(f"builder-{node_id[:12]}-{i}" for i in range(cores))
    cuda = any(device["device"].startswith("cuda") for device in devices)
    for number, name in enumerate(builders):
        _actor(node_id, name, Builder).remote(cuda, label=f"{host}/builder {number}")
    offers = []
    for fields in devices:
        device = fields.pop("device")
        fields["features"] = tuple(fields["features"])
        device_class = DeviceClass(**fields)
        name = f"measurer-{node_id[:12]}-{device}"
        _actor(node_id, name, Measurer).remote(device, device_class.threads)
        offers.append(Offer(f"{host}/{device}", host, device, device_class, name, builders))
    # An offer is made when its actors are up, so that nobody waits for imports in the middle of a job.
    ray.get([ray.get_actor(name, NAMESPACE).ping.remote() for name in (*builders, *(o.measurer for o in offers))])
    return offers


def actor_class(cls: type) -> Any:
    """A class of `workers.actors` as Ray's."""
    return ray.remote(concurrency_groups={CONTROL: 1})(cls)


def _actor(node_id: str, name: str, cls: type) -> Any:
    return actor_class(cls).options(
        **_on(node_id),
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        # A build or a timing that was lost with its actor can be done again; Ray sends it to the restarted one.
        max_restarts=-1,
        max_task_retries=-1,
    )
