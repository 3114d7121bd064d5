"""What users read of a real job: events, programs, records, and the service's own pages."""

from __future__ import annotations

import json
import math
import re
import statistics
from datetime import datetime

import httpx
import numpy as np
import pytest
import tvm

from loopwright.version import VERSION
from tests.acceptance.conftest import Followed
from tests.support.draws import numpy_draws
from tests.support.ledger import check_ledger
from tests.support.service import Service

DRAW = numpy_draws()


def test_events_tell_the_whole_job_in_order(service: Service, main: Followed) -> None:
    """A follower that is cut off again and again misses nothing, hears nothing twice, and is sent home at the end."""
    job, heard = main.job, main.heard
    assert heard == service.events(job["id"]) == service.events(job["id"], after=0)
    ids = [event["id"] for event in heard]
    assert ids == sorted(set(ids))
    assert heard[0]["type"] == heard[-1]["type"] == "job"
    times = [datetime.fromisoformat(event["data"]["at"]) for event in heard]
    assert times == sorted(times)
    assert times[-1] >= datetime.fromisoformat(job["finished_at"])
    assert {**heard[-1]["data"], "at": None} == {"state": "succeeded", "error": None, "at": None}
    assert [event["data"]["state"] for event in heard if event["type"] == "job"] == ["queued", "running", "succeeded"]
    tasks = [event["data"] for event in heard if event["type"] == "task"]
    assert [task["state"] for task in tasks] == ["running", "succeeded"]
    assert tasks[-1]["speedup"] == main.task["speedup"]
    assert tasks[-1]["certified"] is True
    ledger = {trial["id"]: trial for trial in check_ledger(service, job)}
    for told in (event["data"] for event in heard if event["type"] == "trial"):
        line = ledger[told["id"]]
        assert told["median_us"] == line["median_us"]
        assert told["number"] == line["number"]


def test_best_and_record(service: Service, main: Followed) -> None:
    task = main.task
    workload = service.get(f"/workloads/{task['workload_hash']}")
    best = service.get(f"/workloads/{task['workload_hash']}/best")
    assert workload["args"] == [{"shape": [112, 112], "dtype": "float32"}] * 3
    assert workload["bests"] == [best]
    assert workload["records"] == len(service.items("/records", workload_hash=task["workload_hash"]))
    assert best["record_id"] == task["record_id"]
    assert best["target"] == main.job["target"]
    assert best in service.items("/bests", target="auto")

    record = service.get(f"/records/{task['record_id']}")
    assert record["script_before"] == workload["script"]
    assert record["trace"] == best["trace"]
    assert record["script_after"] != record["script_before"]
    assert record["run_secs"]
    assert record["median_us"] == pytest.approx(float(np.median(record["run_secs"])) * 1e6)
    assert record["device"]["target"] == main.job["target"]
    assert record["device"]["threads"] >= 1
    assert record["tvm_version"] == service.http.get("/version").json()["tvm"]
    assert record["worker"]
    certificate = record["certificate"]
    assert certificate == best["certificate"]
    assert certificate["rounds"] == len(certificate["best_run_secs"]) == len(certificate["baseline_run_secs"]) >= 5
    assert certificate["best_us"] == pytest.approx(float(np.median(certificate["best_run_secs"])) * 1e6)
    ratios = np.divide(certificate["baseline_run_secs"], certificate["best_run_secs"]).tolist()
    middle = statistics.median_low(ratios) * statistics.median_high(ratios)
    assert certificate["speedup"] == pytest.approx(math.sqrt(middle))
    assert certificate["max_rel_error"] >= 0
    assert certificate["library"]["name"].startswith("NumPy")
    assert 5 <= len(certificate["library"]["run_secs"]) <= certificate["rounds"]
    assert task["library"] == certificate["library"]
    # The trace is TVM's own: applied here, it gives the program that the record shows.
    module = service.get(f"/workloads/{task['workload_hash']}/module")
    schedule = tvm.s_tir.Schedule(tvm.ir.load_json(module["data"]))
    tvm.s_tir.schedule.Trace.apply_json_to_schedule(record["trace"], schedule)
    tvm.ir.assert_structural_equal(schedule.mod, tvm.script.from_source(record["script_after"]))


@pytest.mark.whole
def test_module_of_a_function_computes(service: Service, main: Followed) -> None:
    answer = service.get(f"/jobs/{main.job['id']}/module")
    assert (answer["applied"], answer["missed"]) == (["main"], [])
    tuned = tvm.compile(tvm.ir.load_json(answer["data"]), target=tvm.target.Target(main.job["target"]))
    left, right = (DRAW.standard_normal((112, 112), dtype="float32") for _ in range(2))
    out = tvm.runtime.tensor(np.full((112, 112), np.nan, "float32"))
    tuned["main"](tvm.runtime.tensor(left), tvm.runtime.tensor(right), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(left @ right, 0), rtol=1e-4, atol=1e-3)


def test_fleet(service: Service) -> None:
    (auto,) = (offer for offer in service.items("/targets") if offer["is_auto"])
    workers = [worker for worker in service.items("/workers") if worker["alive"]]
    assert auto["device_class"] in {worker["device_class"] for worker in workers}
    assert all(worker["threads"] >= 1 and worker["builders"] >= 1 for worker in workers)


def test_the_walls_around_a_program_can_be_read(service: Service, main: Followed) -> None:
    level = service.http.get("/readyz").json()["sandbox"]
    assert level in ("namespaces", "landlock", "none")
    record = service.get(f"/records/{main.task['record_id']}")
    assert record["sandbox"] == record["certificate"]["sandbox"] == level
    measured = [each for each in service.items("/records", workload_hash=main.task["workload_hash"]) if each["job_id"]]
    assert {each["sandbox"] for each in measured} == {level}
    assert {worker["sandbox"] for worker in service.items("/workers")} == {level}


@pytest.mark.usefixtures("main")
def test_own_pages_need_no_token(service: Service) -> None:
    with httpx.Client(base_url=service.url, trust_env=False) as stranger:
        assert stranger.get("/healthz").json() == {"status": "ok"}
        assert stranger.get("/readyz").json()["status"] == "ready"
        assert stranger.get("/version").json() == {"loopwright": VERSION, "tvm": "0.27.0.post1", "api": "v1"}
        metrics = stranger.get("/metrics")
        openapi = stranger.get("/openapi.json")
    assert metrics.headers["content-type"].startswith("text/plain")
    values = dict(line.rsplit(" ", 1) for line in metrics.text.splitlines() if not line.startswith("#"))
    assert float(values['loopwright_jobs{state="succeeded"}']) >= 1
    assert float(values['loopwright_trials_finished_total{outcome="measured"}']) >= 1
    assert any(name.startswith("loopwright_workers") for name in values)

    description = openapi.json()
    assert description["openapi"].startswith("3.")
    hosts = set(re.findall(r"https?://([^/\"\s]+)", json.dumps(description)))
    assert hosts == set()
    references = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(description)))
    assert references == references & set(description["components"]["schemas"])
    operations = [operation for path in description["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
