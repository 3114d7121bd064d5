"""The Ray cluster: starting or joining it, and keeping a measurer a device and a builder on every node.

Actors are named and detached: any controller finds those that another controller made, and they outlive the controller
in a cluster. Ray restarts actors that die.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import psutil
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from loopwright.codegen.host.own_folder import own_folder
from loopwright.codegen.kinds import SandboxLevel
from loopwright.codegen.machine.names import processor_label
from tuner.codec import decode, encode
from tuner.types import Activity, DeviceClass
from workers.boards.config import Board
from workers.child import child_calls
from workers.child.warm_child import ChildError
from workers.messages import DetectedDevice
from workers.progress import Progress
from workers.ray import actor_calls, fleet_versions, known_devices, private
from workers.ray.actor_calls import Pending
from workers.ray.actors import CONTROL, Builder, Measurer
from workers.ray.board_measurer import BoardMeasurer
from workers.ray.boards import Boards
from workers.ray.crew import Crew
from workers.ray.environment import LOOPBACK_ONLY, PATIENT, QUIET, ROTATION, is_loopback
from workers.ray.names import NAMESPACE, builder_name, host_name, living, measurer_name, own_labels
from workers.ray.old_sessions import remove_old_sessions
from workers.walls.levels import Policy, choose

_OBJECT_STORE_BYTES = 256 * 2**20
"""Of the embedded cluster; artifacts in flight take a few megabytes. Not tuned."""
_ALONE = {
    # Ray keeps a process a processor for tasks to come; here is one, when a node joins.
    "num_workers_soft_limit": 0,
    # What this looks at four times a second are Ray's own processes, and not their children, which have the memory.
    "memory_monitor_refresh_ms": 0,
    # What follows is for clusters: to place tasks, to move objects, and to show what runs. Milliseconds; 0 is never.
    "raylet_report_resources_period_milliseconds": 1_000,
    "gcs_pull_resource_loads_period_milliseconds": 10_000,
    "raylet_check_gc_period_milliseconds": 10_000,
    "local_fs_monitor_interval_ms": 10_000,
    "object_manager_timer_freq_ms": 1_000,
    "kill_idle_workers_interval_ms": 5_000,
    "io_context_monitor_probe_interval_ms": 10_000,
    "task_events_report_interval_ms": 0,
    "event_stats": False,
}
"""Ray's own settings for the embedded cluster. With its defaults an idle raylet takes three times as much of a core."""
_JOIN_SECONDS = 120.0
"""To detect and equip a node: its actors import TVM. Not tuned."""

_END_SECONDS = 5.0
"""For processes that were killed. Not tuned."""

T = TypeVar("T")

log = logging.getLogger("loopwright.cluster")


@dataclass(frozen=True, slots=True)
class Offer:
    """One device of one node, with the actors that serve it.

    ``sandbox`` is the level of the walls around the process that runs programs on the device, ``system`` is that of
    `workers.device.system`, ``labels`` are what the node's operator gave it, and ``cpu``, what the kernel
    calls its processor. ``builders`` maps the names of actors to the number of builds that each works on at a time.
    ``host_target`` is that of the node's processor.
    """

    id: str
    host: str
    device: str
    device_class: DeviceClass
    sandbox: SandboxLevel
    system: str
    measurer: str
    builders: Mapping[str, int]
    host_target: str
    labels: Mapping[str, str] = field(default_factory=dict)


def connect(address: str | None, data_dir: Path, walls: Policy, progress: Progress | None = None) -> None:
    """Join the cluster at ``address``, or start one on this machine if it is None. Announce the versions of this fleet.

    A start may take as long as it makes ``progress``. The devices of this machine, which can put up ``walls``, are
    detected meanwhile. Raises ConnectionError if no cluster answers, or none starts.
    """
    if address is None:
        with ThreadPoolExecutor(1) as beside:
            devices = beside.submit(child_calls.detect_devices)
            _start(data_dir, progress or Progress())
        with contextlib.suppress(ChildError):  # whose reason is logged when the node joins, and tries again
            known_devices.store(ray.get_runtime_context().get_node_id(), walls, devices.result())
    else:
        join(address)
    fleet_versions.announce()


def _start(data_dir: Path, progress: Progress) -> None:
    _set_defaults(QUIET)
    _private_token(data_dir)
    _set_defaults(ROTATION | PATIENT)
    try:
        _start_local(progress)
    except Exception as error:  # Ray raises Exception itself, too
        _end_children()
        raise ConnectionError(f"Ray did not start ({' '.join(str(error).split())})") from error


def _end_children() -> None:
    """End what a start that failed has left: Ray ends its processes only once it has started."""
    left = psutil.Process().children(recursive=True)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, _END_SECONDS)


def join(address: str) -> None:
    """Join the cluster at ``address``, through the node that this machine has of it. Raises ConnectionError."""
    _set_defaults(QUIET)
    if is_loopback(address):
        _keep_to_loopback()
    # Forwarding of logs would cost cores that are timed.
    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)


def _set_defaults(variables: dict[str, str]) -> None:
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _keep_to_loopback() -> None:
    """See `LOOPBACK_ONLY`: Ray's processes read the variable; this one has imported Ray before."""
    os.environ.update(LOOPBACK_ONLY)
    private.bind_to_loopback()


def _start_local(progress: Progress) -> None:
    # Ray lets everybody write to its own folder, and names of sockets must be short.
    folder = own_folder(Path(f"/tmp/loopwright-ray-{os.getuid()}")) / "ray"
    remove_old_sessions(folder)
    _keep_to_loopback()
    with private.lean(), private.patient(progress.goes_on):
        ray.init(
            address="local",
            namespace=NAMESPACE,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            _system_config=_ALONE,
            _temp_dir=str(folder),
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
    """Keeps actors on every node.

    ``walls`` are the walls around processes that handle submitted data. ``boards`` are driven by the nodes.
    """

    def __init__(self, walls: Policy, boards: Iterable[Board] = ()) -> None:
        self._walls = walls
        self._boards = Boards(boards, self._start_board)
        self._board_offers: list[Offer] = []
        self._offers: dict[str, list[Offer]] = {}
        self._joining: dict[str, _Joining] = {}
        self._used: dict[str, tuple[float, float]] = {}
        """Per offer, when its slot's use was last read, and the use in seconds."""

    def reconcile(self, timeout: float = _JOIN_SECONDS) -> list[Offer]:
        """Return the offers of all live nodes with CPUs. New ones are equipped beside, and waited for a while.

        That is up to ``timeout``. A node that is lost meanwhile is left out, and tried again the next time if it is
        back. One that does not answer is left to itself: its offers come with a later call.
        """
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")}
        for gone in set(self._offers) - set(alive):
            del self._offers[gone]
            known_devices.forget(gone)
        for node_id in alive.keys() - self._offers.keys() - self._joining.keys():
            self._joining[node_id] = _Joining(alive[node_id], self._walls)
        until = time.monotonic() + timeout
        for node_id, joining in list(self._joining.items()):
            if joining.ended(max(0.0, until - time.monotonic()) if joining.is_new else 0.0):
                del self._joining[node_id]
                if joining.offers is not None and node_id in alive:
                    self._offers[node_id] = joining.offers
        self._board_offers = self._of_boards()
        return self._all_offers()

    def _all_offers(self) -> list[Offer]:
        return [*(offer for offers in self._offers.values() for offer in offers), *self._board_offers]

    def _of_boards(self) -> list[Offer]:
        """Return the offers of boards that answer; the builders of the node that drives a board build for it."""
        drivers = {node_id: offers[0] for node_id, offers in self._offers.items() if offers}
        return [
            replace(
                drivers[board.node_id],
                id=f"{drivers[board.node_id].host}/{board.found.device.name}",
                device=board.found.device.name,
                device_class=board.found.device.device_class,
                sandbox=SandboxLevel.NONE,
                system=board.found.system,
                measurer=board.measurer,
            )
            for board in self._boards.joined({node_id: offer.host for node_id, offer in drivers.items()})
        ]

    def _start_board(self, node_id: str, name: str, board: Board) -> Any:
        actor = _actor(node_id, name, BoardMeasurer)
        return actor.remote(encode(board), self._walls)

    @property
    def expects_nodes(self) -> bool:
        """Return whether a node is about to join."""
        return any(joining.is_new for joining in self._joining.values())

    def activity(self, timeout: float) -> dict[str, Activity]:
        """Return what each offer's actors do now, by offer id; without actors that do not answer within ``timeout``."""
        now = time.time()
        offers = self._all_offers()
        builders = _call_all((name for offer in offers for name in offer.builders), actor_calls.BUILDER_STATUS)
        measurers = _call_all((offer.measurer for offer in offers), actor_calls.MEASURER_STATUS)
        references = [call.reference for call in builders.values()] + [call.reference for call in measurers.values()]
        if not references:
            return {}
        ready, _ = ray.wait(references, num_returns=len(references), timeout=timeout)
        busy = {name: status.busy for name, status in _answers(builders, ready).items()}
        slots = _answers(measurers, ready)
        return {
            offer.id: Activity(
                builders_busy=sum(busy.get(name, 0) for name in offer.builders),
                slot_since=None if slot.since is None else datetime.fromtimestamp(slot.since, UTC),
                slot_trial_id=slot.trial,
                slot_use=self._use(offer.id, now, slot.used),
                leaving=slot.leaving,
                waits_for=slot.waits_for,
            )
            for offer in offers
            if (slot := slots.get(offer.measurer)) is not None
        }

    def present(self, offers: Iterable[Offer]) -> list[Offer]:
        """Return the offers whose measurer is there, with the builders that are there: a node may just have left."""
        found = []
        for offer in offers:
            actors = living([offer.measurer, *offer.builders])
            builders = {name: places for name, places in offer.builders.items() if name in actors}
            if offer.measurer in actors and builders:
                found.append(replace(offer, builders=builders))
        return found

    def measurer(self, offer: Offer) -> Any | None:
        """Return the actor that measures for an offer, or None if its node has just left."""
        return living([offer.measurer]).get(offer.measurer)

    def _use(self, offer_id: str, now: float, used: float) -> float | None:
        """Return the slot's use as a share of the time since the last call.

        None for the first call, and after the actor was restarted.
        """
        before = self._used.get(offer_id)
        self._used[offer_id] = (now, used)
        if before is None or used < before[1] or now <= before[0]:
            return None
        return min(1.0, (used - before[1]) / (now - before[0]))


class _Joining:
    """A new node, which a thread detects and equips: it may hang, and nobody must wait for it."""

    def __init__(self, node: dict[str, Any], walls: Policy) -> None:
        self.offers: list[Offer] | None = None
        """None while it joins, and if it could not be equipped."""
        self._since = time.monotonic()
        self._thread = threading.Thread(target=self._join, args=(node, walls), name="joining", daemon=True)
        self._thread.start()

    @property
    def is_new(self) -> bool:
        """Return whether it is worth waiting for."""
        return time.monotonic() - self._since < _JOIN_SECONDS

    def ended(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _join(self, node: dict[str, Any], walls: Policy) -> None:
        try:
            self.offers = _equip(node, _devices(node["NodeID"], walls), walls)
        except ray.exceptions.RayError as error:
            log.warning("node %s could not be equipped: %s", host_name(node), error)


def crew_of(offers: Sequence[Offer]) -> Crew:
    """Return the actors of these offers; the offers' ids are the workers' names."""
    builders = {name: places for offer in offers for name, places in offer.builders.items()}
    return Crew(
        builders,
        measurers={offer.measurer: offer.id for offer in offers},
        hosts={offer.measurer: offer.host_target for offer in offers},
    )


def _call_all(names: Iterable[str], call: Callable[[Any], Pending[T]]) -> dict[str, Pending[T]]:
    """Call the actors of these names; an actor whose node has just left has no name any more."""
    return {name: call(actor) for name, actor in living(names).items()}


def _answers(calls: dict[str, Pending[T]], ready: Sequence[Any]) -> dict[str, T]:
    """Return the answers of calls that are ready, without actors that were lost."""
    answers = {}
    for name, call in calls.items():
        if call.reference in ready:
            with contextlib.suppress(ray.exceptions.RayError):
                answers[name] = call.result()
    return answers


def _on(node_id: str) -> dict[str, Any]:
    """Return options that pin a task or an actor to a node, without a logical CPU: the host lock governs the cores."""
    return {"num_cpus": 0, "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id, soft=False)}


def _devices(node_id: str, walls: Policy) -> list[DetectedDevice]:
    """Return the devices of a node, which are detected if no controller has done so before."""
    devices = known_devices.of_node(node_id, walls)
    if devices is None:
        detected = ray.get(_detect.options(**_on(node_id)).remote(walls))
        devices = decode(list[DetectedDevice], detected)
        known_devices.store(node_id, walls, devices)
    return devices


@ray.remote(max_retries=2)
def _detect(walls: Policy) -> Any:
    choose(walls)  # a node that can put up no walls joins with none of its devices
    return encode(child_calls.detect_devices())


def _equip(node: dict[str, Any], devices: list[DetectedDevice], walls: Policy) -> list[Offer]:
    node_id, host = node["NodeID"], host_name(node)
    cpu = next(device for device in devices if device.name == "cpu")
    processor, kind = cpu.device_class, processor_label(cpu.processor)
    labels = ({"cpu": kind} if kind else {}) | own_labels(node)
    builders = {builder_name(node_id): processor.cores}
    cuda = any(device.name != "cpu" for device in devices)
    for name, places in builders.items():
        _actor(node_id, name, Builder, places).remote(cuda, walls, label=f"{host}/builder")
    measurers = {measurer_name(node_id, device.name): device for device in devices}
    for name, device in measurers.items():
        # A GPU's measurer needs the processor for references only, which run on all of its threads.
        _actor(node_id, name, Measurer).remote(device.name, processor.threads, walls)
    # Wait until the actors are up, so that no job waits for their imports.
    for building in _call_all(builders, actor_calls.BUILDER_STATUS).values():
        building.result()
    offers = []
    for name, measuring in _call_all(measurers, actor_calls.MEASURER_STATUS).items():
        device = measurers[name]
        # An actor that another controller made may have other walls than this controller would put up.
        status = measuring.result()
        offers.append(
            Offer(
                id=f"{host}/{device.name}",
                host=host,
                device=device.name,
                device_class=device.device_class,
                sandbox=status.sandbox,
                system=status.system,
                measurer=name,
                builders=builders,
                host_target=processor.target_json,
                labels=labels,
            )
        )
    return offers


def actor_class(cls: type, calls: int = 1) -> Any:
    """Return a class of `workers.ray.actors` as an actor class of Ray, which works on so many calls at a time."""
    return ray.remote(concurrency_groups={CONTROL: 1}, max_concurrency=calls)(cls)


def _actor(node_id: str, name: str, cls: type, calls: int = 1) -> Any:
    return actor_class(cls, calls).options(
        **_on(node_id),
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        # A build or a timing that was lost with its actor can be repeated; Ray sends it to the restarted actor.
        max_restarts=-1,
        max_task_retries=-1,
    )
