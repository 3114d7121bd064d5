"""What users read: events, lists, programs, records, and the service's own pages."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import numpy as np
import pytest
import tvm
from tvm import relax

from tests.acceptance.harness import Service, check_ledger
from tests.acceptance.programs import MM_RELU, PERCEPTRON, product

DRAW = np.random.default_rng(0)


def test_events_tell_the_whole_job_in_order(service: Service) -> None:
    """Followed from the first moment, and again afterwards: the same events, the end last."""
    job_id = service.submit(product(36), trials=8)
    live = service.events(job_id)
    job = service.job(job_id)
    assert job["state"] == "succeeded"
    assert service.events(job_id) == live
    ids = [event["id"] for event in live]
    assert ids == sorted(set(ids))
    jobs = [event["data"]["state"] for event in live if event["type"] == "job"]
    assert jobs == ["queued", "running", "succeeded"]
    assert live[0]["type"] == live[-1]["type"] == "job"
    tasks = [event["data"] for event in live if event["type"] == "task"]
    assert [task["state"] for task in tasks] == ["running", "succeeded"]
    assert tasks[-1]["speedup"] == job["tasks"][0]["speedup"]
    assert tasks[-1]["certified"] is True
    ledger = {trial["id"]: trial for trial in check_ledger(service, job)}
    for told in (event["data"] for event in live if event["type"] == "trial"):
        line = ledger[told["id"]]
        assert told["median_us"] == line["median_us"]
        assert told["number"] == line["number"]


def test_events_resume_where_they_were_cut(service: Service) -> None:
    """A follower that is cut off again and again misses nothing and hears nothing twice."""
    job_id = service.submit(product(38), trials=8)
    heard = service.events(job_id, most=1)
    while rest := service.events(job_id, after=heard[-1]["id"], most=3):
        heard += rest
    assert heard == service.events(job_id)
    assert heard[-1]["data"] == {"state": "succeeded", "error": None}
    assert service.events(job_id, after=heard[-1]["id"]) == []


def test_lists_in_pages(service: Service) -> None:
    for extent in (5, 6, 7):
        service.tuned(product(extent), trials=4)
    job = service.tuned(product(34), trials=12)
    paths: dict[str, tuple[str, dict[str, Any]]] = {
        "/jobs": ("id", {}),
        f"/jobs/{job['id']}/trials": ("id", {}),
        "/records": ("id", {"workload_hash": job["tasks"][0]["workload_hash"]}),
        "/bests": ("record_id", {}),
        "/workloads": ("hash", {}),
    }
    for path, (key, query) in paths.items():
        whole = [item[key] for item in service.items(path, **query)]
        assert len(whole) == len(set(whole)) >= 4, path
        pages = service.pages(path, page_size=3, **query)
        assert [len(page) for page in pages[:-1]] == [3] * (len(pages) - 1), path
        assert [item[key] for page in pages for item in page] == whole, path
    created = [item["created_at"] for item in service.items("/jobs")]
    assert created == sorted(created, reverse=True)
    by_latency = [item["median_us"] for item in service.items("/records", sort="latency", **paths["/records"][1])]
    assert by_latency == sorted(by_latency)


def test_new_items_shift_no_page(service: Service) -> None:
    first = service.get("/jobs", page_size=2)
    service.finished(service.submit(product(34), trials=12))
    second = service.get("/jobs", page_size=2, page_token=first["next_page_token"])
    assert not {job["id"] for job in first["items"]} & {job["id"] for job in second["items"]}


def test_best_and_record(service: Service) -> None:
    job = service.tuned(product(44), trials=12)
    (task,) = job["tasks"]
    workload = service.get(f"/workloads/{task['workload_hash']}")
    best = service.get(f"/workloads/{task['workload_hash']}/best")
    assert workload["args"] == [
        {"shape": [44, 64], "dtype": "float32"},
        {"shape": [64, 64], "dtype": "float32"},
        {"shape": [44, 64], "dtype": "float32"},
    ]
    assert workload["bests"] == [best]
    assert workload["records"] == len(service.items("/records", workload_hash=task["workload_hash"]))
    assert best["record_id"] == task["record_id"]
    assert best["target"] == job["target"]
    assert best in service.items("/bests", target="auto")

    record = service.get(f"/records/{task['record_id']}")
    assert record["script_before"] == workload["script"]
    assert record["trace"] == best["trace"]
    assert record["script_after"] != record["script_before"]
    assert record["run_secs"]
    assert record["median_us"] == pytest.approx(float(np.median(record["run_secs"])) * 1e6)
    assert record["device"]["target"] == job["target"]
    assert record["device"]["threads"] >= 1
    assert record["tvm_version"] == service.http.get("/version").json()["tvm"]
    assert record["worker"]
    certificate = record["certificate"]
    assert certificate == best["certificate"]
    assert certificate["rounds"] == len(certificate["best_run_secs"]) == len(certificate["baseline_run_secs"]) >= 5
    assert certificate["best_us"] == pytest.approx(float(np.median(certificate["best_run_secs"])) * 1e6)
    assert certificate["speedup"] == pytest.approx(certificate["baseline_us"] / certificate["best_us"])
    assert certificate["max_rel_error"] >= 0
    # What is shown is what it computes: applying the trace here gives the program that the record shows.
    module = service.get(f"/workloads/{task['workload_hash']}/module")
    schedule = tvm.s_tir.Schedule(tvm.ir.load_json(module["data"]))
    tvm.s_tir.schedule.Trace.apply_json_to_schedule(record["trace"], schedule)
    assert len(schedule.mod.script()) == pytest.approx(len(record["script_after"]), rel=0.3)


def test_module_of_a_function_computes(service: Service) -> None:
    job = service.tuned(MM_RELU, trials=8)
    answer = service.get(f"/jobs/{job['id']}/module")
    assert (answer["applied"], answer["missed"]) == (["main"], [])
    tuned = tvm.compile(tvm.ir.load_json(answer["data"]), target=_target(job))
    left, right = (DRAW.standard_normal((128, 128)).astype("float32") for _ in range(2))
    out = tvm.runtime.tensor(np.full((128, 128), np.nan, "float32"))
    tuned["main"](tvm.runtime.tensor(left), tvm.runtime.tensor(right), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(left @ right, 0), rtol=1e-4, atol=1e-3)


def test_module_of_a_model_computes(service: Service) -> None:
    job = service.tuned(PERCEPTRON, trials=16)
    assert len(job["tasks"]) == 2
    answer = service.get(f"/jobs/{job['id']}/module")
    assert len(answer["applied"]) == 2
    model = tvm.ir.load_json(answer["data"])
    machine = relax.VirtualMachine(tvm.compile(model, target=_target(job)), tvm.cpu())
    shapes = [(4, 64), (64, 32), (32,), (32, 10), (10,)]
    x, w0, b0, w1, b1 = (DRAW.standard_normal(shape).astype("float32") for shape in shapes)
    scores = machine["main"](*(tvm.runtime.tensor(value) for value in (x, w0, b0, w1, b1)))
    np.testing.assert_allclose(scores.numpy(), np.maximum(x @ w0 + b0, 0) @ w1 + b1, rtol=1e-4, atol=1e-3)


def test_submitted_json_is_the_same_workload(service: Service) -> None:
    """TVM's JSON of a program that was sent as TVMScript is answered from its search."""
    script = service.tuned(product(46), trials=8)
    data = tvm.ir.save_json(tvm.IRModule({"main": tvm.script.from_source(product(46))}))
    again = service.finished(service.submit({"format": "tvm-json", "data": data}, trials=8))
    assert again["tasks"][0]["workload_hash"] == script["tasks"][0]["workload_hash"]
    assert again["tasks"][0]["answered_from"] == "database"


def _target(job: dict[str, Any]) -> tvm.target.Target:
    return tvm.target.Target(job["target"])


def test_a_target_by_name_runs_on_the_worker(service: Service) -> None:
    """A plain ``llvm`` target is another target than the worker's own, measured on the same machine."""
    job = service.tuned(product(9), trials=4, target="llvm")
    assert job["target"]["kind"] == "llvm"
    assert service.get(f"/workloads/{job['tasks'][0]['workload_hash']}/best", target="llvm")["target"] == job["target"]


def test_fleet(service: Service) -> None:
    (auto,) = (offer for offer in service.items("/targets") if offer["is_auto"])
    workers = [worker for worker in service.items("/workers") if worker["alive"]]
    assert auto["device_class"] in {worker["device_class"] for worker in workers}
    assert all(worker["threads"] >= 1 and worker["builders"] >= 1 for worker in workers)


def test_own_pages_need_no_token(service: Service) -> None:
    with httpx.Client(base_url=service.url, trust_env=False) as stranger:
        assert stranger.get("/healthz").json() == {"status": "ok"}
        assert stranger.get("/readyz").json() == {"status": "ready"}
        assert stranger.get("/version").json() == {"loopwright": "0.1.0", "tvm": "0.27.0.post1", "api": "v1"}
        metrics = stranger.get("/metrics")
        openapi = stranger.get("/openapi.json")
    assert metrics.headers["content-type"].startswith("text/plain")
    values = dict(line.rsplit(" ", 1) for line in metrics.text.splitlines() if not line.startswith("#"))
    assert float(values['loopwright_jobs{state="succeeded"}']) >= 1
    assert float(values['loopwright_trials{state="measured"}']) >= 1
    assert any(name.startswith("loopwright_workers") for name in values)

    description = openapi.json()
    assert description["openapi"].startswith("3.")
    hosts = set(re.findall(r"https?://([^/\"\s]+)", json.dumps(description)))
    assert hosts == set()
    known = {
        *("/jobs", "/jobs/{job_id}", "/jobs/{job_id}/cancel", "/jobs/{job_id}/events", "/jobs/{job_id}/module"),
        *("/jobs/{job_id}/trials", "/workloads", "/workloads/{workload_hash}", "/workloads/{workload_hash}/best"),
        *("/records", "/records/{record_id}", "/records/import", "/records/export", "/bests", "/workers", "/targets"),
    }
    assert {f"/api/v1{path}" for path in known} <= set(description["paths"])
    references = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(description)))
    assert references == references & set(description["components"]["schemas"])
    operations = [operation for path in description["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
