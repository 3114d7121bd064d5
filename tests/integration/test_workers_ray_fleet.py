"""The fleet on a real Ray cluster on this machine, while its processes are killed under it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest
import ray

from benchmarks.gpu.workloads import product
from loopwright.codegen.gpu.tf32 import with_tf32
from loopwright.codegen.kinds import FailureKind, Lane, Stage
from loopwright.codegen.math_mode import applied_math
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support import simulated_cuda
from tests.support import workloads as programs
from tests.support.builders import BatchRecorder, MiscompilingBuilder, RecordingBuilder
from tests.support.cases import first
from tests.support.processes import is_warm_child
from tests.support.waiting import wait_for
from tuner.budget import Budget
from tuner.errors import FleetDrained, NoDevice, RaceFailed
from tuner.ports import MeasureRequest, Raced, RaceRequest, nothing_meanwhile
from tuner.search.request import TuneRequest
from tuner.search.searcher import Searcher
from tuner.space.builtin import builtin_space
from tuner.testing.fleet_contract import FleetContract
from tuner.testing.memory_ledger import MemoryLedger
from tuner.tune import tune
from tuner.types import Failure, Measured, Outcome, TaskSpec, Workload
from tuner.workload import make_workload
from workers.messages import DetectedDevice, DeviceSpeed, MeasurerStatus
from workers.ray import actor_calls, known_devices, patience
from workers.ray.actors import Builder, Measurer
from workers.ray.cluster import Cluster, Offer, actor_class
from workers.ray.crew import Crew
from workers.ray.fleet import RayFleet
from workers.ray.names import NAMESPACE
from workers.ray.sharing import Sharing
from workers.walls.levels import Policy, choose

_numbers = itertools.count()
UNCHANGED = "[[],[]]"
"""A trace that does nothing."""


@pytest.fixture
def fleet(offer: Offer) -> RayFleet:
    return fleet_of(offer)


def fleet_of(offer: Offer) -> RayFleet:
    return RayFleet(offer.device_class.target_json, offer.builders, {offer.measurer: offer.host})


Start = Callable[..., str]
"""Starts an actor of a class with arguments, and returns its name."""


@contextlib.contextmanager
def starter() -> Iterator[Start]:
    started = []

    def actor(cls: type, *arguments: Any, **options: Any) -> str:
        name = f"test-{next(_numbers)}"
        made = actor_class(cls).options(name=name, namespace=NAMESPACE, num_cpus=0)
        started.append(made.remote(*arguments, **options))
        ray.get(started[-1].status.remote())
        return name

    yield actor
    for one in started:
        ray.kill(one)


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Start]:
    assert cluster
    with starter() as start:
        yield start


@pytest.fixture(scope="module")
def start_once(cluster: Cluster) -> Iterator[Start]:
    """For actors that tests share, which take a second or two to start."""
    assert cluster
    with starter() as start:
        yield start


@pytest.fixture(scope="module")
def spares(start_once: Start) -> tuple[str, str]:
    """Measurers beside that of the offer, whose builders get no work either when it is drained."""
    return start_once(Measurer, "cpu", 1, Policy.PREFER), start_once(Measurer, "cpu", 1, Policy.PREFER)


@pytest.fixture(scope="module")
def impatient(start_once: Start) -> str:
    """A measurer that stops what takes 4 s."""
    return start_once(Measurer, "cpu", 1, Policy.PREFER, seconds=4.0)


@pytest.fixture(scope="module")
def recording(start_once: Start) -> str:
    return start_once(RecordingBuilder)


@pytest.fixture(scope="module")
def gpu(start_once: Start) -> str:
    """A measurer with a simulated GPU."""
    return start_once(Measurer, "cuda:0", 1, Policy.PREFER, simulated_cuda.__name__)


@pytest.fixture(scope="module")
def cuda_builder(start_once: Start) -> str:
    return start_once(Builder, True, Policy.PREFER)


class TestRayFleet(FleetContract):
    """The port's contract, with the fixture ``fleet`` above."""


def request(key: str, workload: Workload, trace_json: str | None = None) -> MeasureRequest:
    return MeasureRequest(key, workload.module_json, workload.args, trace_json, None)


def gather(fleet: RayFleet, count: int, seconds: float = 100) -> dict[str, Outcome]:
    """All outcomes by key; each came once."""
    found: list[tuple[str, Outcome]] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        found += fleet.collect(1.0)
    assert fleet.collect(0.05) == []
    assert len({key for key, _ in found}) == len(found) == count
    return dict(found)


def pid_of(name: str) -> int:
    return int(ray.get(ray.get_actor(name, NAMESPACE).status.remote())["pid"])


def status_of(measurer: str) -> MeasurerStatus:
    return actor_calls.MEASURER_STATUS(ray.get_actor(measurer, NAMESPACE)).result()


def warm_child_of(name: str) -> psutil.Process:
    below = psutil.Process(pid_of(name)).children(recursive=True)
    # Its forks have the same command line.
    return min((process for process in below if is_warm_child(process)), key=psutil.Process.create_time)


def fork_of(child: psutil.Process) -> psutil.Process:
    """What the warm child runs now. Raises ProcessLookupError where it is idle."""
    for fork in child.children():
        return fork
    raise ProcessLookupError


def test_an_offer_has_living_actors(cluster: Cluster, offer: Offer) -> None:
    assert sum(offer.builders.values()) == offer.device_class.cores
    assert all(pid_of(name) for name in (offer.measurer, *offer.builders))
    assert cluster.reconcile() == cluster.reconcile()
    assert offer in cluster.reconcile()


def test_a_controller_that_starts_anew_does_not_detect_what_is_known(
    cluster: Cluster, offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offer  # it was detected
    monkeypatch.setattr("workers.ray.cluster._detect", None)
    assert Cluster(Policy.PREFER).reconcile() == cluster.reconcile()


def test_what_is_known_of_a_node_is_forgotten_with_it(cluster: Cluster, offer: Offer) -> None:
    devices = [DetectedDevice("cpu", offer.device_class)]
    for node_id in ("gone", "kept"):
        assert known_devices.of_node(node_id, Policy.PREFER) is None
        known_devices.store(node_id, Policy.PREFER, devices)
    assert known_devices.of_node("gone", Policy.PREFER) == devices
    assert known_devices.of_node("gone", Policy.REQUIRE) is None
    known_devices.forget("gone")
    assert known_devices.of_node("gone", Policy.PREFER) is None
    assert known_devices.of_node("kept", Policy.PREFER) == devices
    known_devices.forget("kept")


def test_actors_that_have_left_are_passed_over(cluster: Cluster, offer: Offer) -> None:
    left = replace(offer, measurer="left")
    assert cluster.present([left, replace(offer, builders={"left": 1, **offer.builders}), offer]) == [offer, offer]
    fleet = RayFleet(
        offer.device_class.target_json, {"left": 1, **offer.builders}, {"left": "nobody", offer.measurer: offer.host}
    )
    fleet.submit(request("one", programs.product()))
    assert isinstance(gather(fleet, 1)["one"], Measured)
    nobody = RayFleet(offer.device_class.target_json, {"left": 1}, {"left": "nobody"})
    with pytest.raises(NoDevice, match="left"):
        nobody.submit(request("one", programs.product()))


def test_a_node_that_hangs_while_it_joins_holds_nobody_up(
    cluster: Cluster, offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offer  # there is a node
    go_on = threading.Event()
    hung = Cluster(Policy.PREFER)
    monkeypatch.setattr("workers.ray.cluster._equip", lambda *_: go_on.wait() and [offer])
    assert hung.reconcile(timeout=0.1) == []
    assert hung.expects_nodes
    monkeypatch.setattr("workers.ray.cluster._JOIN_SECONDS", 0.0)
    assert hung.reconcile() == []
    assert not hung.expects_nodes
    go_on.set()
    wait_for("the node", lambda: hung.reconcile() == [offer])


def test_an_outcome_tells_who_built_and_measured_it_and_when(fleet: RayFleet, offer: Offer) -> None:
    started = time.time()
    for number in range(8):
        fleet.submit(request(str(number), programs.product()))
    outcomes = gather(fleet, 8)
    ended = time.time()
    assert set(outcomes) == {str(number) for number in range(8)}
    builders = {f"{socket.gethostname()}/builder {number}" for number in range(offer.device_class.cores)}
    assert {outcome.spans[0].worker for outcome in outcomes.values()} == builders
    for outcome in outcomes.values():
        assert isinstance(outcome, Measured)
        assert outcome.median > 0
        build, measure = outcome.spans
        assert (build.lane, measure.lane) == (Lane.BUILD, Lane.MEASURE)
        assert measure.worker == outcome.worker == offer.host
        assert started <= build.start < build.end <= measure.start < measure.end <= ended
    # One slot: no two are measured at once.
    slices = sorted((outcome.spans[1].start, outcome.spans[1].end) for outcome in outcomes.values())
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(slices))


@pytest.mark.whole
def test_a_measurer_times_its_reference_kernels(offer: Offer) -> None:
    actor = ray.get_actor(offer.measurer, NAMESPACE)
    peaks = actor_calls.PEAKS(actor, offer.device_class.target_json).result()
    check = actor_calls.CHECK(actor, offer.device_class.target_json).result()
    assert isinstance(peaks, DeviceSpeed)
    assert isinstance(check, DeviceSpeed)
    assert peaks.dtype == check.dtype == "float32"
    # The same kernel, minutes apart at most; a busy machine makes it slower, never ten times as fast.
    assert 0.1 < check.flops / peaks.flops < 10
    # A core that runs the program at all does more than a billion operations, and copies more than 100 MB, a second.
    assert min(check.flops, peaks.flops) > 1e9
    assert peaks.bytes_per_s is not None
    assert peaks.bytes_per_s > 1e8
    refused = actor_calls.CHECK(actor, '{"kind": "nonsense"}').result()
    assert isinstance(refused, Failure)
    assert refused.kind == FailureKind.COMPILE


@pytest.mark.whole
def test_a_cluster_tells_what_its_workers_are_at(cluster: Cluster, offer: Offer) -> None:
    assert cluster.activity(30)[offer.id].slot_since is None
    fleet = fleet_of(offer)
    for number in range(24):
        fleet.submit(request(f"trial-{number}", programs.product()))
    seen = []
    finished = 0
    while finished < 24:
        finished += len(fleet.collect(0.02))
        seen.append(cluster.activity(30)[offer.id])
    at_work = [each for each in seen if each.slot_since is not None]
    assert at_work
    assert {each.slot_trial_id for each in at_work} - {None} <= {f"trial-{number}" for number in range(24)}
    assert max(each.builders_busy for each in seen) >= 1
    assert all(0.0 <= each.slot_use <= 1.0 for each in seen if each.slot_use is not None)
    assert cluster.activity(30)[offer.id].slot_trial_id is None


@pytest.mark.whole
@pytest.mark.parametrize("policy", [Policy.PREFER, Policy.OFF])
def test_what_was_run_says_behind_which_walls(offer: Offer, start: Start, policy: Policy) -> None:
    measurer = offer.measurer if policy is Policy.PREFER else start(Measurer, "cpu", 1, policy)
    level = choose(policy)
    assert status_of(measurer).sandbox is level
    fleet = RayFleet(offer.device_class.target_json, offer.builders, {measurer: offer.host})
    workload = programs.product()
    fleet.submit(request("0", workload))
    outcome = gather(fleet, 1)["0"]
    assert isinstance(outcome, Measured)
    assert outcome.sandbox is level
    assert fleet.race(race_of(workload, {}), nothing_meanwhile).sandbox is level


def test_an_offer_says_behind_which_walls_its_programs_run(offer: Offer) -> None:
    assert offer.sandbox is status_of(offer.measurer).sandbox is choose(Policy.PREFER)


def test_what_is_built_is_measured_while_the_loop_waits_for_a_search(fleet: RayFleet, offer: Offer) -> None:
    used = status_of(offer.measurer).used
    fleet.submit(request("one", programs.product()))
    until = time.monotonic() + 100
    while (status := status_of(offer.measurer)).used == used or status.since is not None:
        assert time.monotonic() < until, "it was not measured while the loop waited for a search"
        time.sleep(0.002)
        fleet.forward()
    [(key, outcome)] = fleet.collect(30.0)
    assert key == "one"
    assert isinstance(outcome, Measured)


@pytest.mark.parametrize(
    "victim", first(1, ["measuring fork", "builder", "builder's child", "measurer", "measurer's child"])
)
def test_a_process_killed_midway_costs_no_request(fleet: RayFleet, offer: Offer, victim: str) -> None:
    child = warm_child_of(offer.measurer)
    pids: dict[str, Callable[[], int]] = {
        "builder": lambda: pid_of(next(iter(offer.builders))),
        "builder's child": lambda: warm_child_of(next(iter(offer.builders))).pid,
        "measurer": lambda: pid_of(offer.measurer),
        "measurer's child": lambda: warm_child_of(offer.measurer).pid,
        "measuring fork": lambda: fork_of(child).pid,
    }
    # Tens of milliseconds a call: a fork that measures some of these is there for long enough to be met.
    workload = programs.product(256)
    for number in range(12):
        fleet.submit(request(str(number), workload))
    outcomes = dict(fleet.collect(60))
    killed = False
    while not killed:
        with contextlib.suppress(ProcessLookupError):  # no fork yet, or it has just ended: the next one, then
            os.kill(pids[victim](), signal.SIGKILL)
            killed = True
        outcomes |= fleet.collect(0.005)  # what is built goes on to the measurer only here
        assert killed or len(outcomes) < 12, "all was measured before the victim was met"
    outcomes |= gather(fleet, 12 - len(outcomes))
    assert len(outcomes) == 12
    # The candidate that a fork ran comes back, to be counted, and no other of its batch; it may have run none yet.
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, Failure)]
    assert len(failures) <= (victim == "measuring fork")
    assert {failure.kind for failure in failures} <= {FailureKind.KILLED}


def test_a_program_that_crashes_costs_only_itself(fleet: RayFleet) -> None:
    for number in range(6):
        fleet.submit(request(str(number), programs.crash() if number == 2 else programs.elementwise()))
    outcomes = gather(fleet, 6)
    crashed = outcomes.pop("2")
    assert isinstance(crashed, Failure)
    assert (crashed.stage, crashed.kind) == (Stage.RUN, FailureKind.CRASH)
    assert "signal 11" in crashed.message
    assert all(isinstance(outcome, Measured) for outcome in outcomes.values())


def test_a_program_whose_process_is_killed_costs_only_itself(fleet: RayFleet, offer: Offer) -> None:
    for number in range(8):
        fleet.submit(request(str(number), programs.killed() if number in (1, 2) else programs.elementwise()))
    outcomes = gather(fleet, 8)
    killed = [outcomes.pop("1"), outcomes.pop("2")]
    assert all(isinstance(outcome, Measured) for outcome in outcomes.values())
    for outcome in killed:
        assert isinstance(outcome, Failure)
        assert (outcome.stage, outcome.kind, outcome.worker) == (Stage.RUN, FailureKind.KILLED, offer.host)
        assert [span.lane for span in outcome.spans] == [Lane.BUILD, Lane.MEASURE]


def test_candidates_are_measured_in_full_batches_after_the_first(
    offer: Offer, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.ray.fleet._FILL_SECONDS", 1000.0)
    batches = start(BatchRecorder)
    fleet = RayFleet(offer.device_class.target_json, offer.builders, {batches: offer.host})
    for number in range(14):
        fleet.submit(request(str(number), programs.elementwise()))
    gather(fleet, 14)
    sent = ray.get(ray.get_actor(batches, NAMESPACE).sent.remote())
    assert sorted(itertools.chain(*sent), key=int) == [str(number) for number in range(14)]
    # The first one does not wait, and the last one has nothing to wait for.
    assert {len(batch) for batch in sent[1:-1]} == {4}


@pytest.mark.whole
def test_a_program_that_is_measured_alone_has_a_process_of_its_own(offer: Offer, start: Start) -> None:
    batches = start(BatchRecorder)
    fleet = RayFleet(offer.device_class.target_json, offer.builders, {batches: offer.host})
    for number in range(6):
        fleet.submit(replace(request(str(number), programs.elementwise()), alone=number in (0, 3)))
    gather(fleet, 6)
    sent = ray.get(ray.get_actor(batches, NAMESPACE).sent.remote())
    assert sorted(itertools.chain(*sent)) == [str(number) for number in range(6)]
    assert [batch for batch in sent if {"0", "3"} & set(batch)] == [["0"], ["3"]]


@pytest.mark.whole
def test_a_program_that_hangs_costs_only_itself(offer: Offer, impatient: str) -> None:
    fleet = RayFleet(offer.device_class.target_json, offer.builders, {impatient: "here"})
    for number in range(4):
        fleet.submit(request(str(number), programs.hang() if number == 1 else programs.elementwise()))
    outcomes = gather(fleet, 4)
    hung = outcomes.pop("1")
    assert isinstance(hung, Failure)
    assert (hung.stage, hung.kind, hung.worker) == (Stage.RUN, FailureKind.TIMEOUT, "here")
    assert all(isinstance(outcome, Measured) for outcome in outcomes.values())


def test_a_trace_that_does_not_apply_is_a_compile_failure(fleet: RayFleet) -> None:
    fleet.submit(request("bad", programs.product(), '[[["GetNothing",[],[],["b0"]]],[]]'))
    (outcome,) = gather(fleet, 1).values()
    assert isinstance(outcome, Failure)
    assert (outcome.stage, outcome.kind) == (Stage.BUILD, FailureKind.COMPILE)
    assert "GetNothing" in outcome.message


@pytest.mark.whole
def test_a_build_over_its_deadline(offer: Offer, start: Start) -> None:
    fleet = RayFleet(
        offer.device_class.target_json,
        {start(Builder, False, Policy.PREFER, seconds=0.001): 1},
        {offer.measurer: "here"},
    )
    fleet.submit(request("slow", programs.product()))
    (outcome,) = gather(fleet, 1).values()
    assert isinstance(outcome, Failure)
    assert (outcome.stage, outcome.kind) == (Stage.BUILD, FailureKind.TIMEOUT)


def test_a_build_that_takes_far_longer_than_others_of_its_module(
    fleet: RayFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ENOUGH", 1), ("TIMES", 0.001), ("LEAST_SECONDS", 0.001)):
        monkeypatch.setattr(patience, name, value)
    outcomes = {}
    for key, trace in (("first", UNCHANGED), ("second", UNCHANGED), ("baseline", None)):
        fleet.submit(request(key, programs.product(), trace))
        outcomes[key] = gather(fleet, 1)[key]
    assert isinstance(outcomes["first"], Measured)
    late = outcomes["second"]
    assert isinstance(late, Failure)
    assert (late.stage, late.kind) == (Stage.BUILD, FailureKind.TIMEOUT)
    assert isinstance(outcomes["baseline"], Measured)


@pytest.mark.whole
@pytest.mark.parametrize("lost", ["builder", "measurer"])
def test_with_all_actors_lost_there_is_no_device(offer: Offer, start: Start, lost: str) -> None:
    builder = start(Builder, False, Policy.PREFER) if lost == "builder" else next(iter(offer.builders))
    measurer = start(Measurer, "cpu", 1, Policy.PREFER) if lost == "measurer" else offer.measurer
    fleet = RayFleet(offer.device_class.target_json, {builder: 1}, {measurer: "here"})
    gone = builder if lost == "builder" else measurer
    ray.kill(ray.get_actor(gone, NAMESPACE))
    with pytest.raises(NoDevice, match=gone):
        _submit_and_gather(fleet)


@pytest.mark.whole
def test_a_drained_fleet_ends_what_it_measures_and_begins_nothing(offer: Offer, spares: tuple[str, str]) -> None:
    measurer, _ = spares
    drained: set[str] = set()
    workers = {measurer: "here"}
    fleet = RayFleet(offer.device_class.target_json, offer.builders, workers, drained=lambda: drained)
    for number in range(40):
        fleet.submit(request(str(number), programs.product()))
    while not (outcomes := dict(fleet.collect(0.05))):
        pass
    drained.add("here")

    def collect_all() -> None:
        while True:
            outcomes.update(fleet.collect(0.05))

    with pytest.raises(FleetDrained, match=measurer):
        collect_all()
    assert 0 < len(outcomes) < 40
    assert all(isinstance(outcome, Measured) for outcome in outcomes.values())
    assert status_of(measurer).since is None
    with pytest.raises(FleetDrained):
        fleet.race(race_of(programs.product(), {}), nothing_meanwhile)


@pytest.mark.whole
def test_with_one_of_two_workers_drained_the_other_does_all(offer: Offer, spares: tuple[str, str]) -> None:
    measurers = dict(zip(spares, ("one", "two"), strict=True))
    fleet = RayFleet(offer.device_class.target_json, offer.builders, measurers, drained=lambda: {"one"})
    for number in range(6):
        fleet.submit(request(str(number), programs.product()))
    outcomes = gather(fleet, 6)
    assert {outcome.worker for outcome in outcomes.values() if isinstance(outcome, Measured)} == {"two"}


@pytest.mark.whole
def test_a_worker_that_joins_or_is_back_is_taken_up(offer: Offer, spares: tuple[str, str]) -> None:
    first, second = spares
    drained, crew = {"one"}, Crew({}, {second: "two"})
    fleet = RayFleet(
        offer.device_class.target_json, offer.builders, {first: "one"}, drained=lambda: drained, crew=lambda: crew
    )
    for number in range(6):
        fleet.submit(request(str(number), programs.product()))
    outcomes = gather(fleet, 6)
    assert {outcome.worker for outcome in outcomes.values() if isinstance(outcome, Measured)} == {"two"}
    drained.clear()
    crew = Crew({}, {first: "one", second: "two"})

    def both_measure() -> bool:
        for number in range(8):
            fleet.submit(request(str(number), programs.product()))
        outcomes = gather(fleet, 8)
        return {outcome.worker for outcome in outcomes.values() if isinstance(outcome, Measured)} == {"one", "two"}

    wait_for("both to measure", both_measure)
    drained.update(("one", "two"))

    def race_on() -> None:
        while True:
            fleet.race(race_of(programs.product(), {}), nothing_meanwhile)

    with pytest.raises(FleetDrained):
        race_on()


@pytest.mark.whole
def test_a_worker_that_was_lost_is_not_taken_up_again(offer: Offer, start: Start) -> None:
    gone, kept = start(Measurer, "cpu", 1, Policy.PREFER), offer.measurer
    workers = {gone: "gone", kept: "kept"}
    fleet = RayFleet(
        offer.device_class.target_json, offer.builders, workers, crew=lambda: Crew(offer.builders, workers)
    )
    ray.kill(ray.get_actor(gone, NAMESPACE))
    for number in range(12):
        fleet.submit(request(str(number), programs.product()))
    outcomes = gather(fleet, 12)
    assert {outcome.worker for outcome in outcomes.values() if isinstance(outcome, Measured)} == {"kept"}


@pytest.mark.whole
def test_a_small_loop_overtakes_a_large_one(offer: Offer) -> None:
    sharing = Sharing(lambda: 0.0)  # so that the large one's turn does not come by itself
    fleets = {}
    for name, trials in (("large", 40), ("small", 12)):
        share = sharing.share()
        share.trials = trials
        fleets[name] = RayFleet(offer.device_class.target_json, offer.builders, {offer.measurer: "here"}, share=share)
    begun = 2 * sum(offer.builders.values())
    for number in range(40):
        fleets["large"].submit(request(f"large {number}", programs.product()))
    for number in range(12):
        fleets["small"].submit(request(f"small {number}", programs.product()))
    outcomes: dict[str, Outcome] = {}

    def collect_large() -> None:
        while sum(key.startswith("large") for key in outcomes) < 40:
            outcomes.update(fleets["large"].collect(0.5))

    collecting = threading.Thread(target=collect_large)
    collecting.start()
    small = gather(fleets["small"], 12)
    assert len(outcomes) < 20  # those begun before, and a few beside the last of the small one
    collecting.join()
    last = max(outcome.spans[0].start for outcome in small.values())
    before = [key for key, outcome in outcomes.items() if outcome.spans[0].start < last]
    assert len(before) <= begun


@pytest.mark.whole
def test_a_measurer_whose_host_leaves_says_so(start: Start) -> None:
    measurer = start(Measurer, "cpu", 1, Policy.PREFER)
    assert not status_of(measurer).leaving
    actor_calls.leave(ray.get_actor(measurer, NAMESPACE))
    wait_for("the status", lambda: status_of(measurer).leaving)


@pytest.mark.whole
def test_a_measurer_at_work_tells_its_status(offer: Offer, impatient: str) -> None:
    fleet = RayFleet(offer.device_class.target_json, offer.builders, {impatient: "here"})
    child = warm_child_of(impatient)
    fleet.submit(request("long", programs.hang()))
    while not child.children():
        assert fleet.collect(0.05) == []
    assert status_of(impatient).since is not None
    assert child.children()  # it was at work meanwhile
    gather(fleet, 1)


def _submit_and_gather(fleet: RayFleet) -> None:
    for number in range(3):
        fleet.submit(request(str(number), programs.elementwise()))
    gather(fleet, 3)


def race_of(workload: Workload, contenders: dict[str, str]) -> RaceRequest:
    """Return a race that is not repeated if its result is not clear."""
    return RaceRequest(workload.module_json, workload.args, (False, False, True), contenders, repeats=False)


def some_traces(workload: Workload, target_json: str, count: int) -> list[str]:
    space = builtin_space(module_from_json(workload.module_json), target_from(target_json), 1)
    schedules = (space.replay(space.traces[0], seed) for seed in range(1, 50))
    return [trace_to_json(s.trace) for s in itertools.islice((s for s in schedules if s is not None), count)]


def test_a_race_of_real_candidates(fleet: RayFleet, offer: Offer) -> None:
    workload = programs.product()
    first, second = some_traces(workload, offer.device_class.target_json, 2)
    broken = '[[["GetNothing",[],[],["b0"]]],[]]'
    result = fleet.race(race_of(workload, {"a": first, "broken": broken, "b": second}), nothing_meanwhile)
    rounds = len(result.baseline.run_secs)
    assert rounds >= 5
    assert set(result.contenders) == {"a", "b", "broken"}
    for key in ("a", "b"):
        entry = result.contenders[key]
        assert isinstance(entry, Raced)
        assert len(entry.run_secs) == rounds
        assert entry.max_rel_error < 1e-4
    rejected = result.contenders["broken"]
    assert isinstance(rejected, Failure)
    assert (rejected.stage, rejected.kind) == (Stage.BUILD, FailureKind.COMPILE)
    assert "GetNothing" in rejected.message


@pytest.mark.whole
def test_a_race_does_not_build_again_what_was_measured(offer: Offer, recording: str) -> None:
    builder = ray.get_actor(recording, NAMESPACE)
    ray.get(builder.take_traces.remote())
    fleet = RayFleet(offer.device_class.target_json, {recording: 1}, {offer.measurer: "here"})
    workload = programs.product()
    first, second = some_traces(workload, offer.device_class.target_json, 2)
    fleet.submit(request("first", workload, first))
    gather(fleet, 1)
    assert ray.get(builder.take_traces.remote()) == [first]
    # What was measured, and what a race has built, is kept.
    for expected in ([None, None, second], []):
        result = fleet.race(race_of(workload, {"a": first, "b": second}), nothing_meanwhile)
        assert ray.get(builder.take_traces.remote()) == expected
        assert all(isinstance(entry, Raced) for entry in result.contenders.values())


def test_a_race_whose_baseline_crashes_proves_nothing(fleet: RayFleet) -> None:
    with pytest.raises(RaceFailed, match="signal 11"):
        fleet.race(race_of(programs.crash(), {}), nothing_meanwhile)


@pytest.mark.whole
def test_a_contender_that_kills_the_race_is_found_out(offer: Offer, start: Start) -> None:
    """The traces are real; in place of the second's program the builder builds one that crashes."""
    workload = programs.product()
    first, second = some_traces(workload, offer.device_class.target_json, 2)
    builder = start(MiscompilingBuilder, second, programs.crash().module_json)
    fleet = RayFleet(offer.device_class.target_json, {builder: 1}, {offer.measurer: "here"})
    result = fleet.race(race_of(workload, {"good": first, "bad": second}), nothing_meanwhile)
    assert isinstance(result.contenders["good"], Raced)
    rejected = result.contenders["bad"]
    assert isinstance(rejected, Failure)
    assert (rejected.stage, rejected.kind) == (Stage.CERTIFY, FailureKind.CRASH)
    assert "signal 11" in rejected.message


@pytest.mark.whole
def test_a_miscompiled_contender_is_rejected_for_its_wrong_result(offer: Offer, start: Start) -> None:
    workload = programs.product()
    first, second = some_traces(workload, offer.device_class.target_json, 2)
    builder = start(MiscompilingBuilder, second, programs.elementwise().module_json)
    fleet = RayFleet(offer.device_class.target_json, {builder: 1}, {offer.measurer: "here"})
    result = fleet.race(race_of(workload, {"good": first, "bad": second}), nothing_meanwhile)
    assert isinstance(result.contenders["good"], Raced)
    rejected = result.contenders["bad"]
    assert isinstance(rejected, Failure)
    assert (rejected.stage, rejected.kind) == (Stage.CERTIFY, FailureKind.WRONG_RESULT)


@pytest.mark.whole
def test_the_reference_of_a_gpu_is_built_for_the_processor_beside_it(
    offer: Offer, start: Start, recording: str, gpu: str
) -> None:
    builder = ray.get_actor(recording, NAMESPACE)
    one, other = gpu, start(Measurer, "cuda:0", 1, Policy.PREFER, simulated_cuda.__name__)
    any_host = '{"kind": "llvm"}'

    def target_with(hosts: dict[str, str]) -> list[str]:
        crew = Crew({}, {one: "gpu", other: "gpu"}, hosts)
        fleet = RayFleet(programs.CUDA, {recording: 1}, {one: "gpu"}, crew=lambda: crew)
        fleet.race(race_of(programs.product(), {}), nothing_meanwhile)
        targets: list[str] = ray.get(builder.targets_of_references.remote())
        ray.get(builder.take_traces.remote())
        return targets

    assert target_with({one: offer.host_target, other: offer.host_target}) == [offer.host_target]
    assert target_with({one: offer.host_target, other: any_host}) == [any_host]
    assert target_with({one: offer.host_target}) == [any_host]


@pytest.mark.whole
def test_a_job_on_a_simulated_gpu(cuda_builder: str, gpu: str) -> None:
    """Search, CUDA code generation, fleet and certificate for cuda; only the timing is not a GPU's."""
    fleet = RayFleet(programs.CUDA, {cuda_builder: 1}, {gpu: "gpu"})
    ledger = MemoryLedger(1)
    request = TuneRequest([TaskSpec(programs.product(64), 1)], programs.CUDA, None, Budget(4), 1)
    tune(request, Searcher(request), fleet, ledger)
    assert ledger.failures == {}
    certificate = ledger.certificates[0]
    trials = ledger.history(0)
    measured = [trial.outcome for trial in trials if isinstance(trial.outcome, Measured)]
    assert len(measured) >= 2
    assert {outcome.worker for outcome in measured} == {"gpu"}
    assert {outcome.device_state for outcome in measured} == {simulated_cuda.MEASURED_STATE}
    assert certificate.device_state == simulated_cuda.RACED_STATE
    best = min(outcome.median for outcome in measured)
    assert statistics.median(certificate.best_run_secs) <= statistics.median(certificate.baseline_run_secs)
    assert statistics.median(certificate.best_run_secs) == pytest.approx(best, rel=0.02)


@pytest.mark.whole
def test_a_job_that_permits_tf32_on_a_simulated_gpu(cuda_builder: str, gpu: str) -> None:
    """Builders make CUDA code of candidates with TF32, and the certificate has the tolerance for it."""
    target = '{"arch": "sm_80", "kind": "cuda"}'
    fleet = RayFleet(target, {cuda_builder: 1}, {gpu: "gpu"})
    permitting = with_tf32(normal_form(product(240, 240, 240, "float32", "float32")))
    request = TuneRequest([TaskSpec(make_workload(permitting["main"], "product"), 1)], target, None, Budget(24), 1)
    ledger = MemoryLedger(1)
    tune(request, Searcher(request), fleet, ledger)
    assert ledger.failures == {}
    measured = [trial for trial in ledger.history(0) if isinstance(trial.outcome, Measured)]
    traces = [json.loads(trial.candidate.trace_json or "null") for trial in measured]
    assert "tf32" in {applied_math(trace) for trace in traces}
    assert ledger.certificates[0].rtol == 2.0**-10
    assert "may be rounded to TF32" in ledger.certificates[0].inputs
