from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.inputs import ImportedRecord
from db.relatives import Extents, nearest
from db.states import EventType
from db.views import EventView, TrialFinished, TrialView
from loopwright.codegen.kinds import FailureKind, JobState, Lane, Origin, Stage, TrialState
from tests.contract.db.conftest import World
from tuner.errors import LeaseLost
from tuner.types import DeviceClass, Failure, MeasureCandidate, Measured, Outcome, Span

UNSTORABLE = {"\x00", *map(chr, range(0xD800, 0xE000))}

CRASH = Failure(Stage.RUN, FailureKind.CRASH, "signal 11", "worker")


def test_the_time_in_measuring_slots_is_that_of_the_tasks_trials(world: World) -> None:
    claimed, task = world.started("a", "b")
    measured, failed, _ = world.propose(claimed, task, "[1]", "[2]", "[3]")
    spans = (Span(Lane.BUILD, "builder", 0.0, 9.0), Span(Lane.MEASURE, "worker", 9.0, 9.5))
    failure = Failure(Stage.RUN, FailureKind.CRASH, "it crashed", "worker", spans)
    assert world.db.trials.finish(measured.id, claimed.lease_token, Measured((0.1,), "worker", spans))
    assert world.db.trials.finish(failed.id, claimed.lease_token, failure)
    other = world.task(claimed.job.id, 1)
    assert world.db.trials.device_seconds([task.id, other.id]) == 1.0
    assert world.db.trials.device_seconds([other.id]) == 0.0


def test_an_attempt_that_was_killed_counts_to_the_time_and_to_the_use(world: World) -> None:
    claimed, task = world.started()
    trial, other = world.propose(claimed, task, "[1]", "[2]")
    attempt = Span(Lane.MEASURE, "worker", 9.0, 9.5)
    assert world.db.trials.note_kill(trial.id, claimed.lease_token, attempt) is not None
    assert world.db.trials.note_kill(trial.id, "another's", attempt) is None
    failure = Failure(Stage.RUN, FailureKind.KILLED, "killed", "worker", (attempt,))
    assert world.db.trials.finish(trial.id, claimed.lease_token, failure)
    assert world.db.trials.note_kill(trial.id, claimed.lease_token, attempt) is None
    assert world.db.trials.device_seconds([task.id]) == 1.0
    use = world.db.uses.of("owner").today
    assert (use.trials, use.device_seconds) == (1, 1.0)
    assert [line.spans for line in world.db.trials.page(claimed.job.id).items] == [(attempt, attempt), ()]
    assert other.killed == ()


def test_barred_are_the_candidates_that_were_killed_on_the_device_class(world: World) -> None:
    def fail(trace: str | None, kind: FailureKind, hash: str = "w0") -> None:
        claimed, task = world.started(hash)
        (trial,) = world.db.trials.propose(task.id, claimed.lease_token, [MeasureCandidate(trace, Origin.RANDOM)])
        world.db.trials.finish(trial.id, claimed.lease_token, Failure(Stage.RUN, kind, "gone", "worker"))
        world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.FAILED, "for the test")

    for trace, kind in (("[1]", FailureKind.KILLED), ("[2]", FailureKind.DEVICE_LOST), ("[3]", FailureKind.CRASH)):
        fail(trace, kind)
    fail("[4]", FailureKind.KILLED, "other")
    fail("[1]", FailureKind.KILLED)
    fail(None, FailureKind.KILLED)  # a baseline is always tried
    assert world.db.trials.barred("w0", world.device_class.id) == ["[1]"]
    assert world.db.trials.barred("other", world.device_class.id) == ["[4]"]
    assert world.db.trials.barred("w0", "another class") == []
    assert world.db.trials.known("w0", world.device_class.id) == []


def test_the_baseline_is_number_zero_and_the_rest_count_from_one(world: World) -> None:
    claimed, task = world.started()
    candidates = [MeasureCandidate("[1]", Origin.RANDOM, 0.25), MeasureCandidate(None, Origin.BASELINE)]
    trials = world.db.trials.propose(task.id, claimed.lease_token, candidates, seed=7)
    parent = trials[0].candidate.hash
    child = MeasureCandidate("[2]", Origin.MUTATION, 0.75, parent)
    trials += world.db.trials.propose(task.id, claimed.lease_token, [child], seed=8)
    assert [trial.candidate for trial in trials] == [*candidates, child]
    lines = world.db.trials.page(claimed.job.id).items
    assert [(line.number, line.origin, line.predicted) for line in lines] == [
        (0, "baseline", None),
        (1, "random", 0.25),
        (2, "mutation", 0.75),
    ]
    assert [line.id for line in lines] == [trials[1].id, trials[0].id, trials[2].id]


def test_a_candidate_stands_once_in_a_task(world: World) -> None:
    claimed, task = world.started("a")
    first = world.propose(claimed, task, "[1]", "[2]", "[1]")
    assert [trial.candidate.trace_json for trial in first] == ["[1]", "[2]"]
    again = world.propose(claimed, task, "[2]", "[3]")
    assert [trial.candidate.trace_json for trial in again] == ["[3]"]
    assert [trial.id for trial in world.db.trials.history(task.id)] == [trial.id for trial in first + again]
    other, other_task = world.started("b")
    assert len(world.propose(other, other_task, "[1]")) == 1


def test_proposals_at_once_stand_once_with_numbers_without_gaps(world: World) -> None:
    claimed, task = world.started()
    traces = [f"[{number}]" for number in range(10)]
    with ThreadPoolExecutor(6) as pool:
        parts = list(pool.map(lambda _: world.propose(claimed, task, *traces), range(6)))
    assert sorted(str(trial.candidate.trace_json) for part in parts for trial in part) == sorted(traces)
    assert [line.number for line in world.db.trials.page(claimed.job.id).items] == list(range(1, 11))


def test_only_a_running_task_takes_proposals(world: World) -> None:
    job = world.job()
    claimed = world.claim()
    with pytest.raises(LeaseLost):
        world.propose(claimed, world.task(job.id), "[1]")


def test_outcomes_come_back_as_they_were(world: World) -> None:
    claimed, task = world.started()
    measured, failed, _ = world.propose(claimed, task, "[1]", "[2]", "[3]")
    outcome = Measured((0.1 + 0.2, 1e-9, 3e-7), "worker")
    assert world.db.trials.finish(measured.id, claimed.lease_token, outcome)
    assert world.db.trials.finish(failed.id, claimed.lease_token, CRASH)
    history = world.db.trials.history(task.id)
    assert [trial.outcome for trial in history] == [outcome, CRASH, None]
    assert history[0].candidate == measured.candidate


def test_a_finished_trial_never_changes(world: World) -> None:
    claimed, task = world.started()
    [trial] = world.propose(claimed, task, "[1]")
    assert world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "worker"))
    events = world.db.events.after(claimed.job.id)
    assert not world.db.trials.finish(trial.id, claimed.lease_token, CRASH)
    assert world.db.trials.history(task.id)[0].outcome == Measured((0.5,), "worker")
    assert world.db.events.after(claimed.job.id) == events


def test_many_finish_one_trial_and_it_is_counted_once(world: World) -> None:
    claimed, task = world.started()
    [trial] = world.propose(claimed, task, "[1]")
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(
                lambda number: world.db.trials.finish(
                    trial.id, claimed.lease_token, Measured((float(number + 1),), "worker")
                ),
                range(16),
            )
        )
    assert sum(done) == 1
    assert world.db.trials.history(task.id)[0].outcome == Measured((float(done.index(True) + 1),), "worker")
    assert [event.type for event in world.db.events.after(claimed.job.id)].count(EventType.TRIAL) == 1


def test_a_late_result_with_an_old_token_is_discarded(world: World) -> None:
    old, task = world.started()
    done, open_ = world.propose(old, task, "[1]", "[2]")
    assert world.db.trials.finish(done.id, old.lease_token, CRASH)
    world.clock.forward(31)
    new = world.claim()
    assert world.db.tasks.try_start(task.id, new.lease_token)
    assert world.db.trials.adopt(task.id, new.lease_token) == 1

    assert not world.db.trials.finish(open_.id, old.lease_token, Measured((0.1,), "late"))
    assert [trial.outcome for trial in world.db.trials.history(task.id)] == [CRASH, None]
    assert [line.state for line in world.db.trials.page(new.job.id).items] == ["failed", "proposed"]
    assert world.db.trials.finish(open_.id, new.lease_token, Measured((0.2,), "worker"))
    assert world.task(new.job.id).trials == 2
    assert not world.db.trials.finish("nothing", new.lease_token, CRASH)


def test_outcomes_that_arrive_together_are_written_in_their_order_without_those_of_others(world: World) -> None:
    claimed, task = world.started("a", "b")
    second = world.task(claimed.job.id, 1)
    assert world.db.tasks.try_start(second.id, claimed.lease_token)
    done, one, two = world.propose(claimed, task, "[1]", "[2]", "[3]")
    (three,) = world.propose(claimed, second, "[1]")
    spans = (Span(Lane.MEASURE, "worker", 9.0, 9.5),)
    fast = Measured((0.25,), "worker", spans)
    assert world.db.trials.finish(done.id, claimed.lease_token, CRASH)
    slow = Measured((4.0,), "w")
    together: dict[str, Outcome] = {three.id: slow, done.id: fast, two.id: fast, "nothing": fast, one.id: CRASH}
    assert world.db.trials.finish_all(together, "another's") == set()
    assert world.db.trials.finish_all(together, claimed.lease_token) == {one.id, two.id, three.id}
    changes = [event.change for event in world.db.events.after(claimed.job.id)]
    ended = [change.trial.id for change in changes if isinstance(change, TrialFinished)]
    assert ended == [done.id, three.id, two.id, one.id]
    assert [trial.outcome for trial in world.db.trials.history(task.id)] == [CRASH, CRASH, fast]
    first, other = world.db.tasks.of_job(claimed.job.id)
    assert (first.trials, first.failures, first.best_secs) == (3, {FailureKind.CRASH: 2}, 0.25)
    assert (other.trials, other.failures, other.best_secs, other.device_secs) == (1, {}, 4.0, 0.0)
    use = world.db.uses.of("owner").today
    assert (use.trials, use.device_seconds) == (4, 0.5)


def test_the_event_of_a_trial_is_its_line(world: World) -> None:
    claimed, task = world.started()
    [trial] = world.propose(claimed, task, "[1]")
    span = Span(Lane.MEASURE, "worker", 1.0, 2.5)
    world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "worker", (span,)))
    event = world.db.events.after(claimed.job.id)[-1]
    now = world.clock()
    assert event.type == "trial"
    assert event.change == TrialFinished(
        TrialView(
            id=trial.id,
            workload_hash="w0",
            number=1,
            state=TrialState.MEASURED,
            origin=Origin.RANDOM,
            predicted=0.5,
            predicted_by=None,
            median=0.5,
            failure_kind=None,
            failure_stage=None,
            failure_message=None,
            worker="worker",
            created_at=now,
            finished_at=now,
            spans=(Span(Lane.MEASURE, "worker", 1.0, 2.5),),
        )
    )


def test_a_stream_misses_no_event_of_writers_at_once(world: World) -> None:
    claimed, task = world.started()
    trials = world.propose(claimed, task, *(f"[{number}]" for number in range(60)))
    done = Event()

    def follow() -> list[EventView]:
        seen: list[EventView] = []
        last = 0
        while True:
            writers_done = done.is_set()
            events = world.db.events.after(claimed.job.id, last, limit=7)
            seen += events
            last = events[-1].id if events else last
            if writers_done and not events:
                return seen

    with ThreadPoolExecutor(6) as pool:
        stream = pool.submit(follow)
        results = list(pool.map(lambda trial: world.db.trials.finish(trial.id, claimed.lease_token, CRASH), trials))
        done.set()
    assert all(results)
    seen = [event.change.trial.id for event in stream.result() if event.type == "trial"]
    assert sorted(seen) == sorted(trial.id for trial in trials)


def test_lines_are_paged_by_task_and_number_while_more_come(world: World) -> None:
    claimed, first = world.started("a", "b")
    second = world.task(claimed.job.id, 1)
    assert world.db.tasks.try_start(second.id, claimed.lease_token)
    late = world.propose(claimed, second, "[1]", "[2]", "[3]")
    early = world.propose(claimed, first, "[1]", "[2]", "[3]")
    page = world.db.trials.page(claimed.job.id, 2)
    assert [line.id for line in page.items] == [trial.id for trial in early[:2]]
    early += world.propose(claimed, first, "[4]")
    rest = world.db.trials.page(claimed.job.id, 100, page.next_page_token)
    assert [line.id for line in rest.items] == [trial.id for trial in early[2:] + late]
    assert rest.next_page_token is None


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=st.lists(st.text(st.one_of(st.characters(), st.sampled_from("\x00\ud800\udfff"))), max_size=20))
def test_any_message_of_a_crash_can_be_stored(world: World, messages: list[str]) -> None:
    # The database outlives the examples: each takes a job of its own.
    claimed, task = world.started()
    trials = world.propose(claimed, task, *(f"[{number}]" for number in range(len(messages))))
    for trial, message in zip(trials, messages, strict=True):
        failure = Failure(Stage.RUN, FailureKind.CRASH, message, "worker")
        assert world.db.trials.finish(trial.id, claimed.lease_token, failure)
    stored = [trial.outcome.message for trial in world.db.trials.history(task.id)]
    events = world.db.events.after(claimed.job.id)
    assert world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.FAILED, "".join(messages))

    assert all("\x00" not in text and text.encode() for text in stored if text)
    printable = [message for message in messages if not set(message) & UNSTORABLE]
    assert [text for text, message in zip(stored, messages, strict=True) if message in printable] == printable
    assert [event.change.trial.failure_message for event in events if event.type == "trial"] == stored


def test_what_is_known_of_a_workload_is_its_fastest_traces(world: World) -> None:
    world.measured(0.5, 0.1, 0.3, 0.2, hash="mm-128")
    world.measured(0.01, hash="mm-256")
    assert world.db.trials.known("mm-128", world.device_class.id) == ["[1]", "[3]", "[2]", "[0]"]
    assert world.db.trials.known("mm-128", world.device_class.id, most=1) == ["[1]"]
    assert world.db.trials.known("mm-128", "another machine") == []
    assert world.db.trials.known("nobody", world.device_class.id) == []


def test_imported_traces_of_the_same_kind_of_target_follow(world: World) -> None:
    world.measured(0.5, hash="mm-128")
    elsewhere = [
        world.db.devices.put(DeviceClass(target, "imported", (), 0, 0, "imported"))
        for target in ('{"kind":{"name":"llvm"},"mcpu":"another"}', '{"kind":{"name":"cuda"}}')
    ]
    world.db.records.import_(
        [
            ImportedRecord("mm-128", device, trace, (0.01,), version)
            for device, trace, version in (
                (elsewhere[0], "[0]", "0.27"),
                (elsewhere[0], "[8]", "0.27"),
                (elsewhere[0], "[7]", "0.11"),
                (elsewhere[1], "[9]", "0.27"),
            )
        ]
    )
    assert world.db.trials.known("mm-128", world.device_class.id) == ["[0]", "[8]"]


def test_relatives_are_the_fastest_of_each_of_the_family_nearest_shapes_first(world: World) -> None:
    world.measured(0.5, 0.1, 0.3, 0.2, 0.4, hash="mm-256")
    # Traces are told apart by their numbers: the first of this one is slow.
    world.measured(0.9, 0.9, 0.9, 0.9, 0.9, 0.2, 0.1, hash="mm-100")
    world.measured(0.2, hash="other-128")
    world.job("mm-128")
    near, far = ["[6]", "[5]"], ["[1]", "[3]", "[2]", "[4]", "[0]"]
    found = world.db.trials.relatives("mm-128", world.device_class.id)
    # Never the baseline.
    assert found[:4] == [near[0], far[0], near[1], far[1]]
    assert len(found) == 12
    assert world.db.trials.relatives("mm-128", world.device_class.id, most=2) == [near[0], far[0]]
    assert world.db.trials.relatives("mm-100", world.device_class.id) == far
    assert world.db.trials.relatives("mm-128", "another machine") == []
    assert world.db.trials.relatives("nobody", world.device_class.id) == []


def test_the_nearest_are_those_of_all_however_their_sizes_lie(world: World) -> None:
    """They are looked for by size: shapes of one size may be far from each other."""
    shapes = [(8, 8), (64, 1), (1, 64), (16, 4), (4, 16), (7, 9), (9, 9), (2, 2), (128, 128), (8, 9), (32, 2), (63, 1)]
    names = [f"mm-{rows}x{columns}" for rows, columns in shapes]
    for name in names:
        world.measured(0.5, hash=name)
    world.job("mm-8x1", "mm-1000x1000")
    with world.db._sessions.read() as session:
        asked = dict(zip(names, shapes, strict=True)) | {"mm-8x1": (8, 1), "mm-1000x1000": (1000, 1000)}
        for name, (rows, columns) in asked.items():
            distances = {
                other: abs(math.log(rows / r)) + abs(math.log(columns / c))
                for other, (r, c) in zip(names, shapes, strict=True)
                if other != name
            }
            for most in (1, 3, 20):
                found = nearest(session, Extents(), name, names, most)
                expected = sorted(distances.values())[:most]
                assert [distances[other] for other in found] == pytest.approx(expected)


def test_relatives_are_found_however_many_of_the_nearest_teach_nothing(world: World) -> None:
    for extent in (100, 300):
        world.measured(0.5, 0.25, hash=f"mm-{extent}")
    elsewhere = DeviceClass('{"kind":"llvm"}', "cpu-2", (), 8, 8, "runtime 1")
    for extent in range(195, 205):
        world.measured(0.5, hash=f"mm-{extent}", device_class=elsewhere)
    world.job("mm-200")
    far = ["[1]", "[1]", "[0]", "[0]"]
    for most in (1, 2, 4):
        assert world.db.trials.relatives("mm-200", world.device_class.id, most=most) == far[:most]
    # Traces of another version of TVM teach nothing, either.
    world.db.workloads.put([world.workload("mm-300")], "0.28")
    assert world.db.trials.relatives("mm-200", world.device_class.id) == ["[1]", "[0]"]


def test_relatives_are_not_all_of_one_workload(world: World) -> None:
    world.measured(*(0.1 + 0.01 * number for number in range(20)), hash="mm-256")
    world.job("mm-128")
    assert world.db.trials.relatives("mm-128", world.device_class.id) == [f"[{number}]" for number in range(16)]
