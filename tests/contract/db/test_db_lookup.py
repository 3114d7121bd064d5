"""Bests of many workloads in one query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import event

from db.results import lookup
from tests.contract.db.conftest import World
from tuner.types import DeviceClass


@contextmanager
def statements(world: World) -> Iterator[list[tuple[str, Any]]]:
    """The statements and parameters that reach the database within the block, transactions left out."""
    seen: list[tuple[str, Any]] = []

    def note(connection: object, cursor: object, statement: str, parameters: object, *rest: object) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            seen.append((statement, parameters))

    event.listen(world.db._engine, "before_cursor_execute", note)
    yield seen
    event.remove(world.db._engine, "before_cursor_execute", note)


def test_the_best_of_each_workload_and_nothing_for_others(world: World) -> None:
    world.measured(0.5, 0.25, hash="a")
    world.measured(hash="b")
    world.measured(0.1, hash="not asked for")
    found = world.db.lookup.bests(["a", "unknown", "b", "a"], world.device_class.target_json)
    assert set(found) == {"a", "b"}
    assert (found["a"].best.trace_json, found["a"].best.certificate.best_median) == ("[1]", 0.25)
    assert found["b"].best.is_baseline
    assert found["a"].best == world.db.certificates.best("a", world.device_class.id)
    assert found["a"].module_json is None
    keys = world.db.lookup.keys(["b", "unknown", "a"], world.device_class.target_json)
    assert keys == {workload: lookup.BestKey.of(known.best) for workload, known in found.items()}


def test_modules_come_if_asked_for(world: World) -> None:
    world.measured(0.5, hash="a")
    assert world.db.lookup.bests(["a"], world.device_class.target_json, modules=True)["a"].module_json == "{}"


def test_the_fastest_of_the_device_classes_with_the_target(world: World) -> None:
    slow = world.device_class
    fast = replace(slow, model="cpu-2")
    other = replace(slow, target_json='{"kind":"llvm","mcpu":"x"}')
    for device_class, latency in ((slow, 0.5), (fast, 0.25), (other, 0.1)):
        world.measured(latency, hash="a", device_class=device_class)

    def found(target_json: str, device_class: DeviceClass | None = None) -> dict[str, str]:
        known = world.db.lookup.bests(
            ["a"], target_json, device_class_id=None if device_class is None else device_class.id
        )
        return {hash: best.best.certificate.device_class_id for hash, best in known.items()}

    assert found(slow.target_json) == {"a": fast.id}
    assert found(slow.target_json, slow) == {"a": slow.id}
    assert found(other.target_json) == {"a": other.id}
    assert found(slow.target_json, other) == {}
    assert found('{"kind":"llvm","mcpu":"y"}') == {}


def test_one_query_for_some_hundred_workloads_whatever_there_is(world: World) -> None:
    for number in range(3):
        world.measured(0.5, hash=f"w{number}")
    asked = [f"w{number}" for number in range(lookup.CHUNK)]
    with statements(world) as seen:
        assert len(world.db.lookup.bests(asked, world.device_class.target_json)) == 3
    assert len(seen) == 1
    with statements(world) as seen:
        world.db.lookup.bests([*asked, "one more"], world.device_class.target_json)
    assert len(seen) == 2
    with statements(world) as seen:
        assert world.db.lookup.bests([], world.device_class.target_json) == {}
    assert not seen


def test_bests_are_found_by_their_primary_key(world: World) -> None:
    world.measured(0.5, hash="a")
    with statements(world) as seen:
        world.db.lookup.bests(["a", "b"], world.device_class.target_json)
    [(statement, parameters)] = seen
    with world.db._engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [str(row.detail) for row in plan]
            assert any("SEARCH bests USING" in step and "workload_hash=?" in step for step in steps), steps
            assert not any(step.startswith("SCAN") for step in steps), steps
        else:
            # PostgreSQL reads a table of one row as a whole unless it is told not to.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            steps = [str(row[0]) for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
            assert any("Scan" in step and "pk_bests" in step for step in steps), steps
            assert not any("Seq Scan" in step for step in steps), steps
