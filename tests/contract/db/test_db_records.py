from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from db import NotFound
from db.devices import target_id
from db.inputs import ImportedRecord
from db.results.best_schedules import BestScheduleQuery
from db.views import ImportCount
from loopwright.codegen.kinds import AnsweredFrom, FailureKind, JobState, Origin, SandboxLevel, Stage, ThrottleReason
from loopwright.codegen.versions import CODEGEN_VERSION
from tests.contract.db.conftest import BASELINE, World
from tuner.errors import LeaseLost
from tuner.types import BUILTIN_SPACE, DeviceClass, DeviceState, Failure, MeasureCandidate, Measured, Trial

CUDA = DeviceClass('{"kind":{"name":"cuda"}}', "gpu-1", (), 1, 1, "runtime 1")


def pages(list_page: Callable[..., Any], **filters: Any) -> list[Any]:
    items, token = [], None
    while True:
        page = list_page(page_size=2, page_token=token, **filters)
        items += page.items
        token = page.next_page_token
        if token is None:
            return items


def test_records_are_the_measured_trials(world: World) -> None:
    claimed, task = world.started()
    _, failed = world.propose(claimed, task, "[1]", "[2]")
    assert world.db.trials.finish(failed.id, claimed.lease_token, Failure(Stage.RUN, FailureKind.CRASH, "no"))
    assert world.db.records.page().items == ()
    with pytest.raises(NotFound):
        world.db.records.get(failed.id)


def test_a_record_tells_all_that_it_stands_on(world: World) -> None:
    trials, certificate_id = world.measured(0.5, 0.25)
    detail = world.db.records.get(trials[2].id)
    assert (detail.record.median, detail.record.run_secs, detail.record.trace_json) == (0.25, (0.25,), "[1]")
    assert (detail.record.name, detail.record.certified, detail.record.worker) == ("name_w0", True, "worker")
    assert detail.record.job_id == world.db.jobs.page().items[0].id
    assert detail.device_class == world.device_class
    assert (detail.workload.script, detail.workload.summary.records) == ("# w0", 3)
    assert detail.certificate.id == certificate_id
    assert detail.certificate.value == world.certificate(trials[2], 0.25)
    uncertified = world.db.records.get(trials[1].id)
    assert (uncertified.record.certified, uncertified.certificate) == (False, None)


def test_a_certificate_keeps_why_contenders_were_rejected_and_their_trials(world: World) -> None:
    claimed, task = world.started()
    best, wrong = world.propose(claimed, task, "[1]", "[2]")
    for trial in (best, wrong):
        assert world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "worker"))
    rejected = {
        wrong.candidate.hash: Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 2 differs"),
        "f" * 32: Failure(Stage.BUILD, FailureKind.TIMEOUT, "no answer within 60 s", "worker"),
    }
    certificate = replace(world.certificate(best, 0.5), rejected=rejected)
    world.db.certificates.store(task.id, claimed.lease_token, certificate, 64)
    stored = world.db.records.get(best.id).certificate
    assert stored.value.rejected == rejected
    assert stored.rejected_trials == {wrong.candidate.hash: wrong.id}


def test_records_are_filtered_sorted_and_paged(world: World) -> None:
    a, _ = world.measured(0.5, 0.25, hash="a")
    b, _ = world.measured(0.125, hash="b")
    on_gpu, _ = world.measured(0.0625, hash="a", device_class=CUDA)

    def ids(**filters: Any) -> list[str]:
        return [record.id for record in pages(world.db.records.page, **filters)]

    fastest = ids(sort="latency")
    assert fastest[:4] == [on_gpu[1].id, b[1].id, a[2].id, a[1].id]
    assert set(fastest[4:]) == {a[0].id, b[0].id, on_gpu[0].id}
    assert set(ids()[:2]) == {trial.id for trial in on_gpu}
    assert set(ids()[-3:]) == {trial.id for trial in a}
    assert ids(sort="latency", workload_hash="a", device_class_id=CUDA.id) == [on_gpu[1].id, on_gpu[0].id]
    assert set(ids(target_id=target_id(CUDA.target_json))) == {trial.id for trial in on_gpu}
    assert ids(workload_hash="nothing") == []


def test_paging_by_latency_is_stable_while_faster_ones_come(world: World) -> None:
    there, _ = world.measured(0.5, 0.5, 0.5, 0.4)
    first = world.db.records.page(sort="latency", page_size=2)
    world.measured(0.1, hash="w1")
    rest = world.db.records.page(sort="latency", page_size=100, page_token=first.next_page_token)
    seen = [record.id for record in first.items + rest.items if record.workload_hash == "w0"]
    assert sorted(seen) == sorted(trial.id for trial in there)


def test_the_best_is_the_fastest_and_of_equals_the_newest(world: World) -> None:
    assert world.db.certificates.best("w0", world.device_class.id) is None
    world.measured(0.5, force=True)
    trials, _ = world.measured(0.25, space_json="[[1]]")
    equal, newest = world.measured(0.25)
    world.measured(0.75)
    best = world.db.certificates.best("w0", world.device_class.id)
    assert (best.certificate.id, best.certificate.best_median, best.certificate.speedup) == (newest, 0.25, 4.0)
    assert (best.trace_json, best.name, best.target_json, best.is_baseline) == (
        "[0]", "name_w0", world.device_class.target_json, False,
    )  # fmt: skip
    assert best.certificate.trial_id == equal[1].id != trials[1].id
    assert world.db.certificates.best("w0", CUDA.id) is None


def test_everything_that_shows_a_speedup_shows_that_of_the_rounds(world: World) -> None:
    """The ratio of the medians is 0.5."""
    claimed, task = world.started()
    token = claimed.lease_token
    trials = world.db.trials.propose(task.id, token, [BASELINE, MeasureCandidate("[0]", Origin.RANDOM)])
    for trial in trials:
        assert world.db.trials.finish(trial.id, token, Measured((1.0,), "worker"))
    certificate = replace(
        world.certificate(trials[1], 0.5),
        baseline_run_secs=(1.0, 1.0, 1.0),
        best_run_secs=(0.5, 0.5, 0.5, *[2.0] * 4),
    )
    stored = world.db.certificates.store(task.id, token, certificate, 64)
    world.db.tasks.answer(task.id, token, stored.id, AnsweredFrom.SEARCH)
    best = world.db.certificates.best("w0", world.device_class.id)
    assert best is not None
    rows, _ = world.db.best_schedules.page(BestScheduleQuery())
    told = (stored, stored.value, best.certificate, rows[0], world.task(task.job_id))
    assert [each.speedup for each in told] == [2.0] * 5


def test_a_baseline_that_nothing_beats_is_the_best(world: World) -> None:
    trials, _ = world.measured(2.0)
    best = world.db.certificates.best("w0", world.device_class.id)
    assert best.is_baseline
    assert (best.certificate.trial_id, best.certificate.speedup) == (trials[0].id, 1.0)


def test_a_search_is_known_if_it_was_allowed_as_much_in_the_same_space(world: World) -> None:
    _, small = world.measured(0.25, budget=16)
    _, large = world.measured(0.5, budget=64)
    world.measured(0.1, budget=64, space_json="[[1]]")
    device = world.device_class.id
    assert world.db.certificates.known("w0", device, BUILTIN_SPACE, 16).id == small
    assert world.db.certificates.known("w0", device, BUILTIN_SPACE, 17).id == large
    assert world.db.certificates.known("w0", device, BUILTIN_SPACE, 64).id == large
    assert world.db.certificates.known("w0", device, BUILTIN_SPACE, 65) is None
    assert world.db.certificates.known("w0", device, "another", 1) is None
    assert world.db.certificates.known("w0", CUDA.id, BUILTIN_SPACE, 1) is None
    assert world.db.certificates.known("w1", device, BUILTIN_SPACE, 1) is None


def test_bests_are_one_a_workload_and_device_class(world: World) -> None:
    world.measured(0.5, hash="a")
    _, a = world.measured(0.25, hash="a")
    _, b = world.measured(0.5, hash="b")
    _, gpu = world.measured(0.125, hash="a", device_class=CUDA)
    world.measured(0.75, hash="b")

    def ids(**filters: Any) -> list[str]:
        return [best.certificate.id for best in pages(world.db.certificates.bests, **filters)]

    assert ids() == [gpu, b, a]
    assert ids(workload_hash="a") == [gpu, a]
    assert ids(target_id=target_id(world.device_class.target_json)) == [b, a]
    assert ids(device_class_id=CUDA.id) == [gpu]


def test_bests_are_looked_up_for_many_workloads_at_once(world: World) -> None:
    world.measured(0.5, hash="a")
    _, a = world.measured(0.25, hash="a")
    _, b = world.measured(0.5, hash="b")
    _, gpu = world.measured(0.125, hash="a", device_class=CUDA)

    def found(hashes: list[str], machine: DeviceClass) -> dict[str, str]:
        bests = world.db.lookup.bests(hashes, machine.target_json, device_class_id=machine.id)
        return {key: known.best.certificate.id for key, known in bests.items()}

    assert found(["a", "b", "unknown"], world.device_class) == {"a": a, "b": b}
    assert found(["a", "b"], CUDA) == {"a": gpu}
    assert found([], world.device_class) == {}


def test_a_certificate_needs_the_lease_and_a_measured_trial(world: World) -> None:
    claimed, task = world.started()
    [trial] = world.propose(claimed, task, "[1]")
    certificate = world.certificate(trial, 0.5)
    with pytest.raises(NotFound):
        world.db.certificates.store(task.id, claimed.lease_token, certificate, 64)
    with pytest.raises(LeaseLost):
        world.db.certificates.store(task.id, "another token", certificate, 64)
    assert world.db.certificates.bests().items == ()


def test_imports_keep_each_measurement_once(world: World) -> None:
    trials, _ = world.measured(0.5)
    device = world.device_class.id
    records = [ImportedRecord("w0", device, f"[{number}]", (0.25, 0.5, 0.75), "0.27") for number in range(4)]
    # Trace [0] was measured here; [3] comes twice in one import.
    assert world.db.records.import_([*records, records[3]]) == ImportCount(imported=3, duplicates=2)
    assert world.db.records.import_(records) == ImportCount(imported=0, duplicates=4)
    imported = [record for record in world.db.records.page().items if record.job_id is None]
    assert {(record.origin, record.median, record.seed) for record in imported} == {("import", 0.5, None)}
    assert len(world.db.records.page().items) == len(trials) + 3


def test_an_export_that_comes_back_is_known(world: World) -> None:
    world.measured(0.5, 0.25)
    target = world.device_class.target_json
    alike, other = (world.db.devices.put(DeviceClass.imported(each, "tvm")) for each in (target, '{"kind":"cuda"}'))
    back = [ImportedRecord("w0", alike, f"[{n}]", (secs,), "0.27") for n, secs in enumerate((0.5, 0.25000000001))]
    assert world.db.records.import_(back) == ImportCount(imported=0, duplicates=2)
    # Another machine of the same target measured something else, and one with another target the same.
    unlike = [replace(back[0], run_secs=(0.50001,)), replace(back[0], device_class_id=other)]
    assert world.db.records.import_(unlike) == ImportCount(imported=2, duplicates=0)


def test_imports_at_once_keep_each_measurement_once(world: World) -> None:
    world.measured(0.5)
    records = [ImportedRecord("w0", world.device_class.id, f"[{n}, 1]", (0.25,), "0.27") for n in range(20)]
    with ThreadPoolExecutor(6) as pool:
        counts = list(pool.map(lambda step: world.db.records.import_(records[:: 1 if step % 2 else -1]), range(6)))
    assert sum(count.imported for count in counts) == 20
    assert sum(count.duplicates for count in counts) == 100


def test_an_import_for_an_unknown_workload_keeps_nothing(world: World) -> None:
    world.measured(0.5)
    good = ImportedRecord("w0", world.device_class.id, "[9]", (0.25,), "0.27")
    before = world.db.records.page()
    with pytest.raises(IntegrityError):
        world.db.records.import_([good, replace(good, workload_hash="x")])
    assert world.db.records.page() == before


def test_a_record_says_which_codegen_it_needs(world: World) -> None:
    (_, trial), _ = world.measured(0.5)
    assert world.db.records.get(trial.id).record.codegen_version == CODEGEN_VERSION
    best = world.db.certificates.best("w0", world.device_class.id)
    assert best.codegen_version == CODEGEN_VERSION


def test_what_was_measured_says_behind_which_walls(world: World) -> None:
    claimed, task = world.started()
    known, unknown = world.propose(claimed, task, "[1]", "[2]")
    outcome = Measured((0.5,), "worker", sandbox=SandboxLevel.LANDLOCK)
    assert world.db.trials.finish(known.id, claimed.lease_token, outcome)
    assert world.db.trials.finish(unknown.id, claimed.lease_token, Measured((0.25,), "worker"))
    # The race may have run on another worker than the trial.
    certificate = replace(world.certificate(known, 0.5), sandbox=SandboxLevel.NONE)
    assert world.db.certificates.store(task.id, claimed.lease_token, certificate, 64).value == certificate
    world.db.records.import_([ImportedRecord("w0", world.device_class.id, "[3]", (0.125,), "0.27")])
    levels = [record.sandbox for record in world.db.records.page(sort="latency").items]
    assert levels == [None, None, SandboxLevel.LANDLOCK]
    assert world.db.records.get(known.id).certificate.value.sandbox is SandboxLevel.NONE
    assert world.db.certificates.best("w0", world.device_class.id).certificate.value == certificate
    assert [trial.outcome.sandbox for trial in world.db.trials.history(task.id)] == [SandboxLevel.LANDLOCK, None]


def test_what_was_measured_says_in_what_state_its_gpu_was(world: World) -> None:
    claimed, task = world.started()
    known, unknown = world.propose(claimed, task, "[1]", "[2]")
    state = DeviceState(1980, 2619, 61, 412, (ThrottleReason.POWER_CAP,))
    assert world.db.trials.finish(known.id, claimed.lease_token, Measured((0.5,), "worker", device_state=state))
    assert world.db.trials.finish(unknown.id, claimed.lease_token, Measured((0.25,), "worker"))
    certificate = replace(world.certificate(known, 0.5), device_state=DeviceState(sm_mhz=1755, throttled=()))
    assert world.db.certificates.store(task.id, claimed.lease_token, certificate, 64).value == certificate
    assert [record.device_state for record in world.db.records.page(sort="latency").items] == [None, state]
    assert world.db.records.get(known.id).certificate.value.device_state == DeviceState(sm_mhz=1755, throttled=())
    assert world.db.certificates.best("w0", world.device_class.id).certificate.value == certificate


def test_a_trace_that_needs_a_newer_codegen_starts_no_search(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("db.trials.CODEGEN_VERSION", CODEGEN_VERSION + 1)
        world.measured(0.5, hash="family-1")
    assert world.db.trials.known("family-1", world.device_class.id) == []
    world.job("family-2")
    assert world.db.trials.relatives("family-2", world.device_class.id) == []


def test_ancestors_are_the_parents_of_a_task_as_far_as_they_were_measured(world: World) -> None:
    claimed, task = world.started()
    token = claimed.lease_token

    def measured(trace: str, parent: str | None) -> Trial:
        candidate = MeasureCandidate(trace, Origin.MUTATION if parent else Origin.SEED, parent=parent)
        [trial] = world.db.trials.propose(task.id, token, [candidate])
        assert world.db.trials.finish(trial.id, token, Measured((1.0,), "worker"))
        return trial

    first = measured("[1]", None)
    second = measured("[2]", first.candidate.hash)
    third = measured("[3]", second.candidate.hash)
    stray = measured("[4]", "of no trial that is stored")
    assert [each.id for each in world.db.records.ancestors(third.id)] == [second.id, first.id]
    assert world.db.records.ancestors(first.id) == world.db.records.ancestors(stray.id) == []
    # Nothing stored should descend from itself, and who reads it should not wait for ever if it does.
    own = MeasureCandidate("[5]", Origin.MUTATION).hash
    loop = measured("[5]", own)
    assert {each.id for each in world.db.records.ancestors(loop.id)} == {loop.id}


def test_an_ablation_is_stored_by_the_run_that_owns_its_job(world: World) -> None:
    trials, _ = world.measured(0.5, 0.25)
    world.job(ablated_trial=trials[1].id)
    # Nothing answers such a job from the database.
    claimed = world.claim()
    assert world.db.ablations.of_job(claimed.job.id) == world.db.ablations.of_record(trials[1].id)
    assert world.db.ablations.of_record(trials[2].id) is None
    with pytest.raises(LeaseLost):
        world.db.ablations.store(claimed.job.id, "another", {"neighbours": []})
    world.db.ablations.store(claimed.job.id, claimed.lease_token, {"neighbours": []})
    found = world.db.ablations.of_record(trials[1].id)
    assert found is not None
    assert (found.result, found.state) == ({"neighbours": []}, JobState.RUNNING)
