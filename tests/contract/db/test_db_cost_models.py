"""Base models: which trials they learn from, and when they are due."""

from __future__ import annotations

import pytest

from db import cost_models
from db.cost_models import FIRST, GROWTH, PER_WORKLOAD
from db.views import FeatureSample
from loopwright.codegen.kinds import FailureKind, JobState, Origin, Stage
from tests.contract.db.conftest import World
from tuner.types import LOSSES, Failure, MeasureCandidate, Measured

VERSION = "0.27"


def trials(world: World, hash: str, count: int, first: int = 0) -> None:
    """Finished trials with features: every fourth failed to build, every other fourth lost its process."""
    claimed, task = world.started(hash)
    token = claimed.lease_token
    wanted = [MeasureCandidate(f"[{first + n}]", Origin.RANDOM, None, None, b"%d" % (first + n)) for n in range(count)]
    proposed = world.db.trials.propose(task.id, token, [MeasureCandidate(None, Origin.BASELINE), *wanted[: count // 2]])
    world.clock.forward(1)
    proposed += world.db.trials.propose(task.id, token, wanted[count // 2 :])
    for n, trial in enumerate(proposed):
        outcome = {
            1: Failure(Stage.BUILD, FailureKind.COMPILE, "no", "w"),
            3: Failure(Stage.RUN, LOSSES[n // 4 % 2], "gone", "w"),
        }.get(n % 4, Measured((float(n + 1),), "w"))
        assert world.db.trials.finish(trial.id, token, outcome)
    world.db.tasks.fail(task.id, token, "enough")
    world.db.jobs.finish(claimed.job.id, token, JobState.FAILED)
    world.clock.forward(1)


def test_samples_are_the_trials_that_say_something(world: World) -> None:
    trials(world, "a", 6)
    found = world.db.cost_models.samples(world.device_class.id, VERSION)
    # Number 0 is the baseline, numbers 1 and 5 failed, number 3 was lost.
    assert sorted(found, key=lambda sample: sample.features) == [
        FeatureSample("a", b"0", None),
        FeatureSample("a", b"1", 3.0),
        FeatureSample("a", b"3", 5.0),
        FeatureSample("a", b"4", None),
        FeatureSample("a", b"5", 7.0),
    ]
    assert world.db.cost_models.samples(world.device_class.id, "0.28") == []
    assert world.db.cost_models.samples("another", VERSION) == []


def test_of_each_workload_the_newest(world: World) -> None:
    trials(world, "a", 2 * PER_WORKLOAD)
    trials(world, "b", 4)
    found = world.db.cost_models.samples(world.device_class.id, VERSION)
    own = [int(sample.features) for sample in found if sample.workload_hash == "a"]
    assert len(own) == PER_WORKLOAD
    # All of the second batch but those that were lost.
    assert sum(number >= PER_WORKLOAD for number in own) == PER_WORKLOAD * 3 // 4
    assert {sample.workload_hash for sample in found} == {"a", "b"}


def test_of_all_the_newest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for hash in ("a", "b", "c"):
        trials(world, hash, 8)
    monkeypatch.setattr(cost_models, "MOST", 9)
    found = [sample.workload_hash for sample in world.db.cost_models.samples(world.device_class.id, VERSION)]
    assert found == ["c"] * 6 + ["b"] * 3


def test_samples_stay_counted_while_another_version_has_none(world: World) -> None:
    trials(world, "a", 8)
    assert world.db.cost_models.available(world.device_class.id, VERSION) == 6
    assert world.db.cost_models.available(world.device_class.id, "0.28") == 0


def test_it_is_due_when_there_is_a_quarter_more(world: World) -> None:
    models, here = world.db.cost_models, world.device_class.id
    trials(world, "a", FIRST // 2)
    assert not models.due(here, VERSION)
    trials(world, "b", FIRST)
    assert models.due(here, VERSION)
    known = len(models.samples(here, VERSION))
    models.put(here, VERSION, b"model", samples=known, available=models.available(here, VERSION), workloads=2)
    assert not models.due(here, VERSION)
    trials(world, "c", int(known * (GROWTH - 1)) - 8)
    assert not models.due(here, VERSION)
    trials(world, "d", FIRST)
    assert models.due(here, VERSION)


def test_a_model_replaces_the_one_before(world: World) -> None:
    models, here = world.db.cost_models, world.device_class.id
    world.job("a")
    assert models.get(here, VERSION) is None
    for model in (b"\x00one", b"\xfftwo"):
        models.put(here, VERSION, model, samples=100, available=120, workloads=3)
        assert models.get(here, VERSION) == model
    # Features of another TVM are other numbers.
    assert models.get(here, "0.28") is None
