from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import pytest
from sqlalchemy.exc import IntegrityError

from db import IdempotencyConflict, InvalidPage, NotFound
from db.access.views import Quota
from db.inputs import LabelledMachine, NewJob
from db.states import FinalState, JobSort, Scope
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World
from tuner.budget import Budget
from tuner.errors import LeaseLost
from tuner.types import Measured, TaskSpec


def test_a_job_is_stored_with_its_tasks_and_workloads(world: World) -> None:
    job = world.job("a", "b", notes=("taken as is",), space_json="[1]", max_seconds=12.5, seed=3, force=True)
    assert world.db.jobs.get(job.id) == job
    assert (job.state, job.notes, job.budget.max_seconds, job.seed, job.force) == (
        "queued",
        ("taken as is",),
        12.5,
        3,
        True,
    )
    assert job.created_at == world.clock()
    assert world.db.jobs.inputs(job.id).space_json == "[1]"
    tasks = world.db.tasks.of_job(job.id)
    assert [(task.position, task.workload_hash, task.weight, task.state) for task in tasks] == [
        (0, "a", 2, "queued"),
        (1, "b", 2, "queued"),
    ]
    assert world.db.workloads.get("a").script == "# a"
    assert world.db.devices.get(job.device_class_id) == world.device_class


def test_nothing_is_stored_half(world: World) -> None:
    with pytest.raises(IntegrityError):
        world.db.jobs.create(
            NewJob("job", "{}", world.device_class, Budget(64)),
            [TaskSpec(world.workload("a"), 1), TaskSpec(world.workload("b"), cast(int, None))],
            "0.27",
        )
    assert world.db.jobs.page().items == ()
    assert world.db.workloads.page().items == ()
    assert world.db.devices.all() == []


def test_the_same_key_and_request_give_the_same_job(world: World) -> None:
    first = world.job(idempotency_key="key", request_digest="one")
    assert world.job(idempotency_key="key", request_digest="one") == first
    with pytest.raises(IdempotencyConflict):
        world.job(idempotency_key="key", request_digest="two")
    assert world.job() != world.job()
    assert len(world.db.jobs.page().items) == 3


def test_equal_requests_at_once_give_one_job(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: world.job(idempotency_key="key", request_digest="one"), range(16)))
    assert len({job.id for job in jobs}) == 1
    assert [event.type for event in world.db.events.after(jobs[0].id)] == ["job"]


def test_unknown_ids_are_not_found(world: World) -> None:
    for look in (world.db.jobs.get, world.db.jobs.inputs, world.db.jobs.request_cancel):
        with pytest.raises(NotFound):
            look("nothing\x00\ud800")
    with pytest.raises(LeaseLost):
        world.db.jobs.cancel_requested("nothing", "token")


def test_claims_go_by_priority_then_age(world: World) -> None:
    ids = []
    for priority in (0, 5, 0, 5):
        ids.append(world.job(priority=priority).id)
        world.clock.forward(1)
    assert [world.claim().job.id for _ in ids] == [ids[1], ids[3], ids[0], ids[2]]
    assert world.db.jobs.claim("controller", 30) is None


def test_users_take_turns_whoever_submitted_first(world: World) -> None:
    for name in ("ada", "bob"):
        world.db.users.create(name, Scope.SUBMIT, Quota())
    ids = {}
    for number, user in enumerate(("ada", "ada", "ada", "bob", "bob")):
        ids[user, number] = world.job(user_name=user).id
        world.clock.forward(1)
    expected = [("ada", 0), ("bob", 3), ("ada", 1), ("bob", 4), ("ada", 2)]
    assert [world.claim(seconds=300).job.id for _ in ids] == [ids[each] for each in expected]


def test_a_job_that_had_its_turn_waits_behind_the_others(world: World) -> None:
    first, second = world.job(), None
    world.clock.forward(1)
    second = world.job()
    claimed = world.claim()
    world.clock.forward(1)
    assert world.db.jobs.release(claimed.job.id, claimed.lease_token, to_end=True)
    assert world.db.jobs.get(first.id).attempts == 0
    again = world.claim()
    assert again.job.id == second.id
    assert world.db.jobs.release(again.job.id, again.lease_token)
    assert world.claim().job.id == second.id, "who is put back for another reason keeps its place"
    assert world.claim().job.id == first.id


def test_only_jobs_for_machines_that_are_there_are_claimed(world: World) -> None:
    here, elsewhere = world.device_class, replace(world.device_class, model="cpu-2")
    own_target = replace(here, target_json='{"kind":"llvm","mcpu":"x86-64-v3"}')
    waits = world.job(device_class=elsewhere)
    jobs = {world.job(device_class=each).id for each in (here, own_target)}
    claims = [world.db.jobs.claim("controller", 30, machines=[LabelledMachine(here)]) for _ in range(3)]
    assert {claimed.job.id for claimed in claims[:2] if claimed} == jobs
    assert claims[2] is None
    assert world.db.jobs.claim("controller", 30, machines=[]) is None
    assert world.db.jobs.get(waits.id).state == "queued"
    claimed = world.db.jobs.claim("controller", 30, machines=[LabelledMachine(here), LabelledMachine(elsewhere)])
    assert claimed is not None
    assert claimed.job.id == waits.id


def test_a_job_that_asks_for_labels_is_claimed_for_machines_that_have_them(world: World) -> None:
    def machine(**labels: str) -> LabelledMachine:
        return LabelledMachine(world.device_class, frozenset(labels.items()))

    def claim(*machines: LabelledMachine) -> str | None:
        claimed = world.db.jobs.claim("controller", 30, machines=machines)
        return None if claimed is None else claimed.job.id

    gold = world.job(labels={"tier": "gold", "rack": "a"})
    other = LabelledMachine(replace(world.device_class, model="cpu-2"), frozenset({("tier", "gold"), ("rack", "a")}))
    assert gold.labels == {"rack": "a", "tier": "gold"}
    assert claim(machine(), machine(rack="a"), machine(rack="b", tier="gold"), other) is None
    assert world.db.jobs.waiting(0, [machine()]) is None
    any_machine = world.job()
    assert claim(machine()) == any_machine.id
    assert world.db.jobs.waiting(0, [machine(rack="a", tier="gold", more="c")]) is not None
    assert claim(machine(rack="a", tier="gold", more="c")) == gold.id


def test_expired_jobs_are_queued_again_though_their_machines_have_gone(world: World) -> None:
    job = world.job()
    world.claim(seconds=30)
    world.clock.forward(31)
    assert world.db.jobs.claim("other", 30, machines=[]) is None
    view = world.db.jobs.get(job.id)
    assert (view.state, view.attempts) == ("queued", 1)


def test_waiting_tells_the_highest_priority_of_those_that_wait_for_long(world: World) -> None:
    machines = [LabelledMachine(world.device_class)]

    def waiting(seconds: float = 5) -> int | None:
        found = world.db.jobs.waiting(seconds, machines)
        return None if found is None else found.priority

    world.job(priority=3)
    world.clock.forward(10)
    world.job(priority=7)
    assert waiting() == 3
    assert world.db.jobs.waiting(5, []) is None
    world.clock.forward(5)
    assert waiting() == 7
    assert world.db.jobs.lowest_priority() is None
    world.claim()
    assert waiting() == 3
    assert world.db.jobs.lowest_priority() == 7
    world.claim()
    assert waiting() is None
    assert world.db.jobs.lowest_priority() == 3


def test_of_those_that_wait_each_is_claimed_once_and_no_other(world: World) -> None:
    machines = [LabelledMachine(world.device_class)]
    world.job(priority=2)
    long = world.job(priority=4)
    world.clock.forward(5)
    world.job(priority=4)
    waiting = world.db.jobs.waiting(5, machines)

    def claim(owner: str) -> str | None:
        claimed = world.db.jobs.claim(owner, 30, machines=machines, waiting=waiting)
        return None if claimed is None else claimed.job.id

    with ThreadPoolExecutor(4) as pool:
        claimed = [each for each in pool.map(claim, "abcd") if each]
    assert claimed == [long.id]
    assert claim("e") is None
    assert world.claim().job.priority == 4
    assert world.claim().job.priority == 2


def test_many_claim_at_once_and_each_job_is_given_once(world: World) -> None:
    ids = {world.job().id for _ in range(24)}

    def claim_all(owner: str) -> list[str]:
        claimed = []
        while (job := world.db.jobs.claim(f"owner {owner}", 30)) is not None:
            claimed.append(job.job.id)
        return claimed

    with ThreadPoolExecutor(8) as pool:
        claimed = [job_id for part in pool.map(claim_all, range(8)) for job_id in part]
    # A claim may pass over a row that another one holds at that instant; what is left is there for the next claim.
    claimed += claim_all("last")
    assert sorted(claimed) == sorted(ids)


def test_an_expired_lease_is_claimed_anew_and_the_old_token_is_worth_nothing(world: World) -> None:
    job = world.job()
    old = world.claim(seconds=30)
    world.clock.forward(29)
    assert world.db.jobs.claim("other", 30) is None
    world.clock.forward(1)
    new = world.db.jobs.claim("other", 30)
    assert new.job.attempts == 2
    assert new.job.started_at == old.job.started_at
    assert new.inputs == old.inputs

    assert not world.db.jobs.renew(job.id, old.lease_token, 30, add_elapsed=5)
    assert not world.db.jobs.release(job.id, old.lease_token)
    assert not world.db.jobs.finish(job.id, old.lease_token, JobState.FAILED, "late")
    assert world.db.jobs.get(job.id) == new.job
    assert world.db.jobs.finish(job.id, new.lease_token, JobState.SUCCEEDED)
    assert not world.db.jobs.finish(job.id, new.lease_token, JobState.FAILED, "twice")
    assert world.db.jobs.get(job.id).state == "succeeded"


def test_renewing_holds_the_job_and_adds_up_its_running_time(world: World) -> None:
    world.job()
    claimed = world.claim(seconds=30)
    for _ in range(3):
        world.clock.forward(20)
        assert world.db.jobs.renew(claimed.job.id, claimed.lease_token, 30, add_elapsed=20)
    assert world.db.jobs.claim("other", 30) is None
    world.clock.forward(31)
    assert world.claim().job.elapsed_s == 60


def test_a_late_owner_may_renew_until_somebody_else_claims(world: World) -> None:
    world.job()
    claimed = world.claim(seconds=30)
    world.clock.forward(100)
    assert world.db.jobs.renew(claimed.job.id, claimed.lease_token, 30)
    assert world.db.jobs.claim("other", 30) is None


def test_a_released_job_waits_again_with_its_tasks(world: World) -> None:
    claimed, task = world.started()
    assert world.db.jobs.release(claimed.job.id, claimed.lease_token)
    assert world.db.jobs.get(claimed.job.id).state == "queued"
    assert world.task(claimed.job.id).state == "queued"
    again = world.claim()
    assert again.lease_token != claimed.lease_token
    assert world.db.tasks.try_start(task.id, again.lease_token)


def test_leases_of_a_dead_owner_end_at_once(world: World) -> None:
    world.job()
    world.job()
    mine, other = world.db.jobs.claim("me", 30), world.db.jobs.claim("other", 30)
    assert world.db.jobs.expire_leases("me") == 1
    assert world.claim().job.id == mine.job.id
    assert world.db.jobs.expire_leases() == 2
    assert {world.claim().job.id, world.claim().job.id} == {mine.job.id, other.job.id}


@pytest.mark.parametrize(
    ("state", "error", "left_over"),
    [
        (JobState.FAILED, "no worker", "failed"),
        (JobState.CANCELLED, None, "cancelled"),
        (JobState.SUCCEEDED, None, "cancelled"),
    ],
)
def test_the_end_of_a_job_ends_its_tasks(world: World, state: FinalState, error: str | None, left_over: str) -> None:
    claimed, first = world.started("a", "b")
    world.db.tasks.fail(first.id, claimed.lease_token, "does not compile")
    assert world.db.jobs.finish(claimed.job.id, claimed.lease_token, state, error)
    tasks = world.db.tasks.of_job(claimed.job.id)
    assert [(task.state, task.error) for task in tasks] == [("failed", "does not compile"), (left_over, error)]
    job = world.db.jobs.get(claimed.job.id)
    assert (job.state, job.error, job.finished_at) == (state, error, world.clock())


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_candidates_that_were_not_measured_go_with_the_job(world: World, state: FinalState) -> None:
    claimed, task = world.started()
    measured, *_ = world.propose(claimed, task, "a", "b", "c")
    assert world.db.trials.finish(measured.id, claimed.lease_token, Measured((1.0,), "worker"))
    other, its_task = world.started("another")
    world.propose(other, its_task, "d")
    assert world.db.jobs.finish(claimed.job.id, claimed.lease_token, state)
    assert [trial.id for trial in world.db.trials.history(task.id)] == [measured.id]
    assert len(world.db.trials.history(its_task.id)) == 1


def test_cancelling_a_waiting_job_ends_it(world: World) -> None:
    job = world.db.jobs.request_cancel(world.job().id)
    assert (job.state, job.finished_at) == ("cancelled", world.clock())
    assert world.task(job.id).state == "cancelled"
    assert world.db.jobs.claim("controller", 30) is None
    assert world.db.jobs.request_cancel(job.id) == job


def test_cancelling_a_running_job_tells_its_owner(world: World) -> None:
    claimed, _ = world.started()
    assert not world.db.jobs.cancel_requested(claimed.job.id, claimed.lease_token)
    assert world.db.jobs.request_cancel(claimed.job.id).state == "running"
    assert world.db.jobs.cancel_requested(claimed.job.id, claimed.lease_token)
    with pytest.raises(LeaseLost):
        world.db.jobs.cancel_requested(claimed.job.id, "another's")
    assert world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.CANCELLED)
    with pytest.raises(LeaseLost):
        world.db.jobs.cancel_requested(claimed.job.id, claimed.lease_token)
    assert world.task(claimed.job.id).state == "cancelled"


def test_cancelling_a_finished_job_changes_nothing(world: World) -> None:
    world.measured(0.5)
    [job] = world.db.jobs.page().items
    assert world.db.jobs.request_cancel(job.id) == job
    assert not job.cancel_requested


def test_pages_neither_repeat_nor_miss_while_jobs_are_added(world: World) -> None:
    there = []
    for number in range(7):
        there.append(world.job().id)
        if number % 3 == 0:  # some share an instant
            world.clock.forward(1)
    seen, token = [], None
    while True:
        page = world.db.jobs.page(2, token)
        seen += [job.id for job in page.items]
        world.clock.forward(1)
        world.job()
        token = page.next_page_token
        if token is None:
            break
    assert sorted(seen) == sorted(there)
    assert seen[-1] == there[0]


def test_a_search_finds_parts_of_names_in_any_case_and_beginnings_of_ids(world: World) -> None:
    net, other, percent = (world.job(name=name).id for name in ("ResNet-50", "attention", "90 % sparse"))

    def found(text: str) -> set[str]:
        return {job.id for job in world.db.jobs.page(search=text).items}

    assert found("resnet") == {net}
    assert found("%") == {percent}  # no pattern
    assert found(other[:9]) == {other}
    assert found(other[3:]) == set()
    assert found("") == {net, other, percent}


def test_a_list_begins_with_jobs_since_a_time(world: World) -> None:
    world.job(name="old")
    world.clock.forward(100)
    since = world.clock.time
    world.job(name="at the time")
    world.clock.forward(1)
    world.job(name="new")
    assert [job.name for job in world.db.jobs.page(since=since).items] == ["new", "at the time"]
    assert [job.name for job in world.db.jobs.page(since=since, search="NEW").items] == ["new"]


def test_an_activity_is_that_of_a_running_job(world: World) -> None:
    claimed, _ = world.started("a")
    job_id, token = claimed.job.id, claimed.lease_token
    assert world.db.jobs.set_activity(job_id, token, "closing race, 1 of 2")
    assert world.db.jobs.get(job_id).activity == "closing race, 1 of 2"
    assert not world.db.jobs.set_activity(job_id, "another's", "searching")
    world.db.jobs.release(job_id, token)
    assert world.db.jobs.get(job_id).activity is None
    again = world.claim()
    world.db.jobs.set_activity(job_id, again.lease_token, "searching")
    world.db.jobs.finish(job_id, again.lease_token, JobState.SUCCEEDED)
    assert world.db.jobs.get(job_id).activity is None


def test_a_job_keeps_what_it_did_and_when(world: World) -> None:
    claimed, _ = world.started("a")
    job_id, token = claimed.job.id, claimed.lease_token
    for activity, phase in (
        ("searching", None),
        ("searching", None),
        ("closing race, 1 of 2", "closing races"),
        ("closing race, 2 of 2", "closing races"),
    ):
        world.db.jobs.set_activity(job_id, token, activity, phase)
        world.clock.forward(10)
    world.db.jobs.release(job_id, token)
    phases = world.db.jobs.get(job_id).phases
    assert [phase.activity for phase in phases] == ["searching", "closing races", "in the queue again"]
    assert [(phase.started_at - phases[0].started_at).total_seconds() for phase in phases] == [0, 20, 40]
    world.db.jobs.release(job_id, token)
    assert world.db.jobs.get(job_id).phases == phases


def test_users_describe_jobs_and_find_them_by_their_tags(world: World) -> None:
    first = world.job(tags=("nightly", "release 1", "nightly"), description="of Monday")
    second = world.job(tags=("night%",))
    assert (first.tags, first.description) == (("nightly", "release 1"), "of Monday")

    def tagged(tag: str) -> list[str]:
        return [job.id for job in world.db.jobs.page(tag=tag).items]

    assert tagged("nightly") == [first.id]
    assert tagged("night%") == [second.id]
    assert tagged("release") == []  # part of a tag
    described = world.db.jobs.describe(first.id, tags=[])
    assert (described.tags, described.description) == ((), "of Monday")
    assert world.db.jobs.describe(first.id, description="").tags == ()
    assert world.db.jobs.get(first.id).description == ""
    assert tagged("nightly") == []
    with pytest.raises(NotFound):
        world.db.jobs.describe("nothing", tags=["x"])


def test_lists_are_sorted_page_by_page(world: World) -> None:
    world.measured(0.5, name="b")  # saves half a second in each of two calls
    world.measured(0.25, hash="w1", name="c")
    world.job("w2", name="a")

    def names(sort: JobSort, *, descending: bool) -> list[str]:
        found, token = [], None
        while True:
            page = world.db.jobs.page(1, token, sort=sort, descending=descending)
            found += [job.name for job in page.items]
            token = page.next_page_token
            if token is None:
                return found

    assert names(JobSort.NAME, descending=False) == ["a", "b", "c"]
    assert names(JobSort.GAIN, descending=True) == ["c", "b", "a"]
    assert names(JobSort.CREATED, descending=False) == ["b", "c", "a"]
    token = world.db.jobs.page(1).next_page_token
    with pytest.raises(InvalidPage):
        world.db.jobs.page(1, token, sort=JobSort.GAIN)


def test_tasks_keep_where_they_are_called(world: World) -> None:
    new = NewJob("job", "{}", world.device_class, Budget(64))
    spec = TaskSpec(world.workload("a"), 2, sources=("layers.0.fc", "layers.1.fc"))
    job = world.db.jobs.create(new, [spec, TaskSpec(world.workload("b"), 1)], "0.27")
    assert [task.sources for task in world.db.tasks.of_job(job.id)] == [("layers.0.fc", "layers.1.fc"), ()]


@pytest.mark.parametrize("size", [0, -1, 501])
def test_page_sizes_have_bounds(world: World, size: int) -> None:
    with pytest.raises(InvalidPage):
        world.db.jobs.page(size)


def test_a_token_of_another_list_is_refused(world: World) -> None:
    world.job("a", "b")
    token = world.db.workloads.page(1).next_page_token
    assert token is not None
    with pytest.raises(InvalidPage):
        world.db.jobs.page(1, token)
    for forged in ("", "x", "é", token[:-2], token + "AA"):
        with pytest.raises(InvalidPage):
            world.db.workloads.page(1, forged)


def test_events_tell_every_state_in_order(world: World) -> None:
    claimed, _ = world.started("a")
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.FAILED, "bad \x00 thing")
    events = world.db.events.after(claimed.job.id)
    assert [(event.type, event.change.state) for event in events] == [
        ("job", "queued"),
        ("job", "running"),
        ("task", "running"),
        ("task", "failed"),
        ("job", "failed"),
    ]
    assert events[-1].change.error == "bad \ufffd thing" == world.db.jobs.get(claimed.job.id).error
    assert [event.id for event in events] == sorted({event.id for event in events})
    assert world.db.events.after(claimed.job.id, events[1].id, limit=2) == events[2:4]
    assert world.db.events.after(claimed.job.id, events[-1].id) == []


def test_the_latest_event_of_each_job(world: World) -> None:
    jobs = [world.job().id for _ in range(3)]
    world.db.jobs.request_cancel(jobs[0])
    latest = {job_id: world.db.events.after(job_id)[-1].id for job_id in jobs}
    assert len(set(latest.values())) == 3
    assert world.db.events.latest(jobs) == latest
    assert world.db.events.latest([jobs[1], "none"]) == {jobs[1]: latest[jobs[1]]}
    assert world.db.events.latest([]) == {}
