from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config

from db import Database, migrate
from db.engine import create_engine
from db.leaderboard import LeaderboardQuery
from db.states import JobState, LeaseLoss, TaskState, TrialState
from db.views import JobChanged, TaskChanged, TrialFinished
from tuner.types import DeviceClass, DeviceState, Failure, FailureKind, Stage


def tables(url: str) -> set[str]:
    engine = create_engine(url)
    try:
        return set(sqlalchemy.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_up_down_and_up_again(empty_url: str) -> None:
    assert migrate.current(empty_url) is None
    migrate.upgrade(empty_url)
    assert migrate.current(empty_url) == migrate.head()
    made = tables(empty_url)
    migrate.downgrade(empty_url, "base")
    assert migrate.current(empty_url) is None
    assert tables(empty_url) == {"alembic_version"}
    migrate.upgrade(empty_url)
    assert tables(empty_url) == made


def test_models_and_migrations_say_the_same(empty_url: str) -> None:
    assert migrate.differences(empty_url) != []
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []


def test_upgrading_again_keeps_what_is_there(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    device_class = DeviceClass('{"kind":"llvm"}', "m", (), 1, 1, "r")
    db = Database(empty_url)
    db.devices.put(device_class)
    db.close()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert db.devices.all() == [device_class]
    db.close()


def test_many_may_upgrade_at_once(empty_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: migrate.upgrade(empty_url), range(4)))
    assert migrate.differences(empty_url) == []


ROWS: dict[str, dict[str, Any]] = {
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
"""Of a job with one certified task, as revision 0002 knew them."""
CERTIFICATE: dict[str, Any] = {
    **{"workload_hash": "w", "device_class_id": "d", "space_hash": "default", "trial_id": "x", "inputs": ""},
    **{"rtol": 0.0, "atol": 0.0, "max_abs_error": 0.0, "max_rel_error": 0.0, "baseline_run_secs": "[1.0]"},
    **{"baseline_median": 1.0, "contenders": 2, "budget_trials": 8},
    "rejected": '{"p": "argument 2 differs", "q": "died by signal 11"}',
    "created_at": "2030-01-01 00:00:00+00:00",
}
LATER_ROWS: dict[str, dict[str, Any]] = {
    "certificates": CERTIFICATE | {"id": "c2", "best_run_secs": "[0.1]", "best_median": 0.1},
    "workers": {
        **{"id": "h/cpu", "host": "h", "device": "cpu", "device_class_id": "d", "builders": 1},
        "last_seen_at": "2030-01-01 00:00:00+00:00",
    },
}
"""The certificate of `ROWS` and the worker, as revision 0005 knew them."""


def test_what_was_certified_before_the_leaderboard_is_in_it(empty_url: str) -> None:
    """Rows as revision 0002 knew them: two certificates of a workload, and the job that they answered."""
    migrate.upgrade(empty_url, "0002")
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        for table, row in ROWS.items():
            insert(connection, table, row)
        insert(connection, "certificates", CERTIFICATE | {"id": "c1", "best_run_secs": "[0.5]", "best_median": 0.5})
        samples = {"id": "c2", "best_run_secs": "[0.1, 0.2, 0.3, 0.4, 0.5]", "best_median": 0.3}
        insert(connection, "certificates", CERTIFICATE | samples)
    engine.dispose()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    (best,), total = db.leaderboard.page(LeaderboardQuery("mm"))
    assert (total, best.certificate_id, best.name, best.op, best.job_id) == (1, "c2", "Mm", "", "j")
    assert (best.best_median, best.speedup, best.spread) == (0.3, 1.0 / 0.3, pytest.approx(2 / 3))
    assert db.totals(60).saved_secs == pytest.approx(3 * 0.7)
    assert db.certificates.best("w", "d").certificate.value.rejected == {
        "p": Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 2 differs"),
        "q": Failure(Stage.CERTIFY, FailureKind.CRASH, "died by signal 11"),
    }
    assert db.certificates.best("w", "d").codegen_version == 1
    db.close()
    migrate.downgrade(empty_url, "0002")
    assert "bests" not in tables(empty_url)


def brought_up_from_0005(url: str) -> sqlalchemy.Engine:
    """Fill the tables as they were then, bring them up to date, and return an engine of the database."""
    migrate.upgrade(url, "0005")
    engine = create_engine(url)
    with engine.begin() as connection:
        for table, row in (ROWS | LATER_ROWS).items():
            insert(connection, table, row)
    migrate.upgrade(url)
    return engine


def test_the_walls_of_an_earlier_release_are_unknown(empty_url: str) -> None:
    engine = brought_up_from_0005(empty_url)
    db = Database(empty_url)
    record = db.records.get("x")
    assert record.record.sandbox is None
    assert record.certificate is not None
    assert record.certificate.value.sandbox is None
    assert [worker.sandbox for worker in db.workers.all(60)] == [None]
    db.close()
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE trials SET sandbox = 'landlock'"))
    migrate.downgrade(empty_url, "0005")
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert db.records.get("x").record == record.record
    db.close()
    engine.dispose()


def test_the_state_of_a_gpu_is_unknown_to_an_earlier_release(empty_url: str) -> None:
    engine = brought_up_from_0005(empty_url)
    assert states(empty_url) == (None, None)
    with engine.begin() as connection:
        for table in ("trials", "certificates"):
            connection.execute(sqlalchemy.text(f"UPDATE {table} SET device_state = '{{\"celsius\": 61}}'"))
    engine.dispose()
    assert states(empty_url) == (DeviceState(celsius=61), DeviceState(celsius=61))
    migrate.downgrade(empty_url, "0018")
    migrate.upgrade(empty_url)
    assert states(empty_url) == (None, None)


def states(url: str) -> tuple[DeviceState | None, DeviceState | None]:
    """Return the state of the GPU of the record of `ROWS`, and that of its certificate."""
    db = Database(url)
    try:
        record = db.records.get("x")
    finally:
        db.close()
    assert record.certificate is not None
    return record.record.device_state, record.certificate.value.device_state


AT = "2030-01-01 00:00:00+00:00"
TRIAL_EVENT: dict[str, Any] = {
    **{"id": "x", "workload_hash": "w", "number": 1, "state": "measured", "origin": "random", "predicted": None},
    **{"median_us": 0.1e6, "failure_kind": None, "failure_stage": None, "failure_message": None, "worker": "host/cpu"},
    **{"created_at": "2030-01-01T00:00:00+00:00", "finished_at": "2030-01-01T00:00:00+00:00"},
    "spans": [
        {
            **{"stage": "build", "worker": "b0", "started_at": "1970-01-01T00:00:01+00:00"},
            "finished_at": "1970-01-01T00:00:02.500000+00:00",
        }
    ],
}
FAILED_EVENT = TRIAL_EVENT | {
    **{"id": "y", "number": 2, "state": "failed", "median_us": None, "failure_kind": "CRASH", "failure_stage": "run"},
    **{"failure_message": "died", "worker": None, "spans": []},
}
TASK_EVENT = {
    **{"workload_hash": "w", "state": "succeeded", "baseline_us": 2e6, "best_us": 0.5e6, "speedup": 4.0},
    "certified": True,
}
RUNNING_EVENT = {
    **{"workload_hash": "w", "state": "running", "baseline_us": None, "best_us": None, "speedup": None},
    "certified": False,
}


def old_trials_and_events(connection: sqlalchemy.Connection) -> None:
    """As revision 0003 knew them: trials in states that are gone, and events as the wire showed them."""
    for table, row in ROWS.items():
        insert(connection, table, row)
    finished = {"finished_at": AT, "spans": '[["build", "b0", 1.0, 2.5]]', "worker": "host/cpu"}
    names = ", ".join(f"{name} = :{name}" for name in finished)
    connection.execute(sqlalchemy.text(f"UPDATE trials SET {names}"), finished)
    trial = ROWS["trials"] | {"median": None, "trace_json": "[]"}
    for number, state in enumerate(("leased", "built", "proposed"), 3):
        line = {"id": state, "number": number, "candidate_hash": state, "state": state, "started_at": AT}
        insert(connection, "trials", trial | line)
    failure = {"failure_kind": "CRASH", "failure_stage": "run", "failure_message": "died", "finished_at": AT}
    line = {"id": "y", "number": 2, "candidate_hash": "y", "state": "failed", "origin": "space"}
    insert(connection, "trials", trial | line | failure)
    events = (
        ("job", {"state": "queued", "error": None}),
        ("task", RUNNING_EVENT),
        ("trial", TRIAL_EVENT),
        ("trial", FAILED_EVENT),
        ("task", TASK_EVENT),
    )
    for type, data in events:
        insert(connection, "events", {"job_id": "j", "type": type, "data": json.dumps(data), "created_at": AT})


def test_trials_and_events_of_an_earlier_release_are_read(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0003")
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        old_trials_and_events(connection)
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    lines = db.trials.page("j").items
    assert [(line.id, line.state) for line in lines] == [
        ("x", TrialState.MEASURED),
        ("y", TrialState.FAILED),
        *((id, TrialState.PROPOSED) for id in ("leased", "built", "proposed")),
    ]
    assert [event.change for event in db.events.after("j")] == [
        JobChanged(JobState.QUEUED, None),
        TaskChanged("w", TaskState.RUNNING, None, None),
        TrialFinished(lines[0]),
        TrialFinished(lines[1]),
        TaskChanged("w", TaskState.SUCCEEDED, 2.0, 0.5),
    ]
    db.close()
    with engine.begin() as connection, pytest.raises(sqlalchemy.exc.IntegrityError):
        connection.execute(sqlalchemy.text("UPDATE trials SET state = 'leased' WHERE id = 'built'"))
    engine.dispose()


def test_going_back_restores_what_the_earlier_release_reads(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0003")
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        old_trials_and_events(connection)
    migrate.upgrade(empty_url)
    migrate.downgrade(empty_url, "0003")
    with engine.begin() as connection:
        events = sqlalchemy.table("events", *(sqlalchemy.column(name) for name in ("id", "type")))
        data = sqlalchemy.column("data", sqlalchemy.JSON)
        stored = connection.execute(sqlalchemy.select(data).select_from(events).order_by(events.c.id)).scalars().all()
        connection.execute(
            sqlalchemy.text("UPDATE trials SET state = 'leased', started_at = created_at WHERE id = 'built'")
        )
    engine.dispose()
    assert stored[1:] == [RUNNING_EVENT, TRIAL_EVENT, FAILED_EVENT, TASK_EVENT]


def test_workers_and_jobs_of_an_earlier_release_have_no_labels(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0002")
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        for table, row in (ROWS | {"workers": LATER_ROWS["workers"]}).items():
            insert(connection, table, row)
    engine.dispose()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    (worker,) = db.workers.all(60)
    assert (worker.labels, worker.drained_at, worker.activity.leaving) == ({}, None, False)
    assert db.jobs.get("j").labels == {}
    db.workers.drain("h/cpu", drained=True)
    db.close()
    migrate.downgrade(empty_url, "0017")
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert db.workers.drained() == frozenset()
    db.close()


def ledger_before_sums(connection: sqlalchemy.Connection) -> None:
    """As revision 0013 knew it: traces as text, and nothing that is summed."""
    for table, row in (ROWS | LATER_ROWS).items():
        insert(connection, table, row)
    texts = {"module": '{"ü": [1, 2]}', "script": "# ä"}
    connection.execute(sqlalchemy.text("UPDATE workloads SET module_json = :module, script = :script"), texts)
    # Long enough to be compressed, and with what JSON may contain.
    trace = json.dumps([[["GetSBlock", [], ["ä", "main"], ["b0"]]] * 50, []])
    finished = {"trace_json": trace, "features": b"\x00\xff", "lease_token": "old", "finished_at": AT}
    names = ", ".join(f"{name} = :{name}" for name in finished)
    connection.execute(sqlalchemy.text(f"UPDATE trials SET {names}"), finished)
    trial = ROWS["trials"] | {"median": None, "state": "failed", "failure_stage": "run", "lease_token": "old"}
    for number, kind in enumerate(("CRASH", "CRASH", "DEVICE_LOST"), 2):
        line = {"id": f"f{number}", "number": number, "candidate_hash": str(number), "failure_kind": kind}
        insert(connection, "trials", trial | line | {"features": b"1"})
    baseline = {"id": "b", "number": 0, "origin": "baseline", "candidate_hash": "base", "trace_json": None}
    insert(connection, "trials", ROWS["trials"] | baseline | {"median": 2.0})
    imported = {"id": "i", "number": 0, "origin": "import", "candidate_hash": "imp", "task_id": None}
    insert(connection, "trials", ROWS["trials"] | imported)
    model = {"device_class_id": "d", "tvm_version": "1", "model": b"m", "samples": 70, "workloads": 3, "created_at": AT}
    insert(connection, "cost_models", model)


def test_a_ledger_of_an_earlier_release_is_compressed_and_summed(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0013")
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        ledger_before_sums(connection)
        stored = {row.id: row for row in connection.execute(sqlalchemy.text("SELECT * FROM trials"))}
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert {view.id: view.trace_json for view in db.records.page().items} == {
        id: row.trace_json for id, row in stored.items() if row.median is not None
    }
    workload = db.workloads.get("w")
    assert (workload.module_json, workload.script) == ('{"ü": [1, 2]}', "# ä")
    assert db.jobs.inputs("j").module_json == "{}"
    (task,) = db.tasks.of_job("j")
    assert (task.trials, task.failures) == (4, {FailureKind.CRASH: 2, FailureKind.DEVICE_LOST: 1})
    assert db.counts().trials == {"measured": 2, "CRASH": 2, "DEVICE_LOST": 1}
    assert db.totals(60).trials == 4
    assert db.cost_models.available("d", "1") == 3
    assert not db.cost_models.due("d", "1")
    db.close()
    with engine.begin() as connection:
        sums = connection.execute(sqlalchemy.text("SELECT baseline_secs, best_secs FROM tasks")).one()
        assert tuple(sums) == (2.0, 0.1)
        assert connection.execute(sqlalchemy.text("SELECT count(lease_token) FROM trials")).scalar() == 0
    migrate.downgrade(empty_url, "0013")
    with engine.begin() as connection:
        for row in connection.execute(sqlalchemy.text("SELECT * FROM trials")):
            assert row.trace_json == stored[row.id].trace_json
        texts = connection.execute(sqlalchemy.text("SELECT module_json, script FROM workloads")).one()
        assert tuple(texts) == ('{"ü": [1, 2]}', "# ä")
        assert connection.execute(sqlalchemy.text("SELECT module_json FROM jobs")).scalar() == "{}"
    engine.dispose()
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []


def test_leases_are_counted_anew_after_going_back(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    lost = "INSERT INTO lease_losses (cause, losses) VALUES ('expired', 3)"
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(lost))
    engine.dispose()
    db = Database(empty_url)
    assert db.counts().lease_losses == {LeaseLoss.EXPIRED: 3}
    db.close()
    migrate.downgrade(empty_url, "0014")
    assert "lease_losses" not in tables(empty_url)
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert db.counts().lease_losses == {}
    db.close()


def test_jobs_of_a_group_are_jobs_for_an_earlier_release(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0014")
    engine = create_engine(empty_url)
    with engine.begin() as connection:
        for table in ("targets", "device_classes"):
            insert(connection, table, ROWS[table])
        job = {name: value for name, value in ROWS["jobs"].items() if name != "module_json"} | {"module": b""}
        for name in ("j", "k"):
            insert(connection, "jobs", job | {"id": name})
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert [job.group_id for job in db.jobs.page().items] == [None, None]
    with engine.begin() as connection:
        grouped = "UPDATE jobs SET group_id = 'g', group_position = {} WHERE id = '{}'"
        for position, name in enumerate(("k", "j")):
            connection.execute(sqlalchemy.text(grouped.format(position, name)))
    assert [job.id for job in db.jobs.page(group_id="g").items] == ["k", "j"]
    with engine.begin() as connection, pytest.raises(sqlalchemy.exc.IntegrityError):
        connection.execute(sqlalchemy.text(grouped.format(0, "j")))
    db.close()
    migrate.downgrade(empty_url, "0014")
    with engine.begin() as connection:
        assert connection.execute(sqlalchemy.text("SELECT id FROM jobs ORDER BY id")).scalars().all() == ["j", "k"]
    engine.dispose()
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []


def test_a_migration_that_breaks_a_foreign_key_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/loopwright.db"
    migrate.upgrade(url, "0003")
    engine = create_engine(url)
    with engine.begin() as connection:
        for table, row in ROWS.items():
            insert(connection, table, row)

    upgrade = command.upgrade

    def upgrade_and_drop_a_parent(config: Config, revision: str) -> None:
        upgrade(config, revision)
        config.attributes["connection"].execute(sqlalchemy.text("DELETE FROM tasks"))

    monkeypatch.setattr(command, "upgrade", upgrade_and_drop_a_parent)
    with pytest.raises(RuntimeError, match="foreign keys"):
        migrate.upgrade(url)
    with engine.begin() as connection:
        assert connection.execute(sqlalchemy.text("SELECT count(*) FROM tasks")).scalar() == 1
    engine.dispose()
    assert migrate.current(url) == "0003"


def insert(connection: sqlalchemy.Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    connection.execute(sqlalchemy.text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)
