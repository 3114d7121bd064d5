from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy

from db import Database, migrate
from db.engine import create_engine
from db.leaderboard import LeaderboardQuery
from tuner.types import DeviceClass


def tables(url):
    engine = create_engine(url)
    try:
        return set(sqlalchemy.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_up_down_and_up_again(empty_url):
    assert migrate.current(empty_url) is None
    migrate.upgrade(empty_url)
    assert migrate.current(empty_url) == migrate.head()
    made = tables(empty_url)
    migrate.downgrade(empty_url, "base")
    assert migrate.current(empty_url) is None
    assert tables(empty_url) == {"alembic_version"}
    migrate.upgrade(empty_url)
    assert tables(empty_url) == made


def test_models_and_migrations_say_the_same(empty_url):
    assert migrate.differences(empty_url) != []
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []


def test_upgrading_again_keeps_what_is_there(empty_url):
    migrate.upgrade(empty_url)
    device_class = DeviceClass('{"kind":"llvm"}', "m", (), 1, 1, "r")
    db = Database(empty_url)
    db.devices.put(device_class)
    db.close()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert db.devices.all() == [device_class]
    db.close()


def test_many_may_upgrade_at_once(empty_url):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: migrate.upgrade(empty_url), range(4)))
    assert migrate.differences(empty_url) == []


def test_what_was_certified_before_the_leaderboard_is_in_it(empty_url):
    """Rows as revision 0002 knew them: two certificates of a workload, and the job that they answered."""
    migrate.upgrade(empty_url, "0002")
    engine = create_engine(empty_url)
    rows = {
        "targets": {"id": "t", "json": '{"kind": "llvm"}', "kind": "llvm"},
        "device_classes": {
            **{"id": "d", "target_id": "t", "model": "cpu", "features": "[]", "cores": 1, "threads": 1},
            "runtime": "r",
        },
        "workloads": {
            **{"hash": "w", "family": "f", "name": "Mm", "module_json": "{}", "script": "", "args": "[]"},
            **{"tvm_version": "1", "created_at": "2030-01-01 00:00:00+00:00"},
        },
        "jobs": {
            **{"id": "j", "name": "job", "state": "succeeded", "module_json": "{}", "space_hash": "default"},
            **{"device_class_id": "d", "target_json": "{}", "max_trials": 8, "seed": 0, "priority": 0},
            **{"force": False, "notes": "[]", "cancel_requested": False, "attempts": 1, "elapsed_s": 1.0},
            "created_at": "2030-01-01 00:00:00+00:00",
        },
        "tasks": {
            **{"id": "k", "job_id": "j", "position": 0, "workload_hash": "w", "name": "Mm", "weight": 3},
            **{"key": "key", "state": "succeeded", "certificate_id": "c2"},
        },
        "trials": {
            **{"id": "x", "task_id": "k", "workload_hash": "w", "device_class_id": "d", "number": 1},
            **{"origin": "random", "candidate_hash": "h", "trace_json": "[]", "state": "measured", "median": 0.1},
            **{"tvm_version": "1", "created_at": "2030-01-01 00:00:00+00:00"},
        },
    }
    certificate = {
        **{"workload_hash": "w", "device_class_id": "d", "space_hash": "default", "trial_id": "x", "inputs": ""},
        **{"rtol": 0.0, "atol": 0.0, "max_abs_error": 0.0, "max_rel_error": 0.0, "baseline_run_secs": "[1.0]"},
        **{"baseline_median": 1.0, "contenders": 2, "rejected": "{}", "budget_trials": 8},
        "created_at": "2030-01-01 00:00:00+00:00",
    }
    with engine.begin() as connection:
        for table, row in rows.items():
            insert(connection, table, row)
        insert(connection, "certificates", certificate | {"id": "c1", "best_run_secs": "[0.5]", "best_median": 0.5})
        samples = {"id": "c2", "best_run_secs": "[0.1, 0.2, 0.3, 0.4, 0.5]", "best_median": 0.3}
        insert(connection, "certificates", certificate | samples)
    engine.dispose()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    (best,), total = db.leaderboard.page(LeaderboardQuery("mm"))
    assert (total, best.certificate_id, best.name, best.op, best.job_id) == (1, "c2", "Mm", "", "j")
    assert (best.best_median, best.speedup, best.spread) == (0.3, 1.0 / 0.3, pytest.approx(2 / 3))
    assert db.totals(60).saved_secs == pytest.approx(3 * 0.7)
    db.close()
    migrate.downgrade(empty_url, "0002")
    assert "bests" not in tables(empty_url)


def insert(connection, table, row):
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    connection.execute(sqlalchemy.text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)
