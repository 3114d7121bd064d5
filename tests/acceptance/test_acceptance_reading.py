"""What users read: events, lists, programs, records, and the service's own pages."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import httpx
import numpy as np
import pytest
import tvm
from tvm import relax

from loopwright.version import VERSION
from tests.support.ledger import check_ledger
from tests.support.perceptron import inputs, scores
from tests.support.programs import MM_RELU, product, product_relu
from tests.support.service import Service

DRAW = np.random.default_rng(0)


def test_events_tell_the_whole_job_in_order(service: Service) -> None:
    """A follower that is cut off again and again misses nothing, hears nothing twice, and is sent home at the end."""
    job_id = service.submit(product(38), trials=8)
    heard = service.events(job_id, most=1)
    while rest := service.events(job_id, after=heard[-1]["id"], most=3):
        heard += rest
    job = service.job(job_id)
    assert job["state"] == "succeeded"
    assert heard == service.events(job_id) == service.events(job_id, after=0)
    ids = [event["id"] for event in heard]
    assert ids == sorted(set(ids))
    assert heard[0]["type"] == heard[-1]["type"] == "job"
    told = [datetime.fromisoformat(event["data"]["at"]) for event in heard]
    assert told == sorted(told)
    assert told[-1] >= datetime.fromisoformat(job["finished_at"])
    assert {**heard[-1]["data"], "at": None} == {"state": "succeeded", "error": None, "at": None}
    assert [event["data"]["state"] for event in heard if event["type"] == "job"] == ["queued", "running", "succeeded"]
    tasks = [event["data"] for event in heard if event["type"] == "task"]
    assert [task["state"] for task in tasks] == ["running", "succeeded"]
    assert tasks[-1]["speedup"] == job["tasks"][0]["speedup"]
    assert tasks[-1]["certified"] is True
    ledger = {trial["id"]: trial for trial in check_ledger(service, job)}
    for told in (event["data"] for event in heard if event["type"] == "trial"):
        line = ledger[told["id"]]
        assert told["median_us"] == line["median_us"]
        assert told["number"] == line["number"]


def test_lists_in_pages(service: Service, finished_job: dict[str, Any], finished_model: dict[str, Any]) -> None:
    paths: dict[str, tuple[str, int, dict[str, Any]]] = {
        "/jobs": ("id", 1, {}),
        f"/jobs/{finished_model['id']}/trials": ("id", 5, {}),
        "/records": ("id", 5, {"workload_hash": finished_job["tasks"][0]["workload_hash"]}),
        "/bests": ("record_id", 2, {}),
        "/workloads": ("hash", 2, {}),
    }
    for path, (key, size, query) in paths.items():
        whole = [item[key] for item in service.items(path, **query)]
        assert len(whole) == len(set(whole)) > size, path
        pages = service.pages(path, page_size=size, **query)
        assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1), path
        assert [item[key] for page in pages for item in page] == whole, path
    created = [datetime.fromisoformat(item["created_at"]) for item in service.items("/jobs")]
    assert created == sorted(created, reverse=True)
    by_latency = [item["median_us"] for item in service.items("/records", sort="latency", **paths["/records"][2])]
    assert by_latency == sorted(by_latency)


@pytest.mark.usefixtures("finished_model")
def test_new_items_shift_no_page(service: Service, finished_job: dict[str, Any]) -> None:
    whole = [job["id"] for job in service.items("/jobs")]
    first = service.get("/jobs", page_size=1)
    service.finished(service.submit(MM_RELU, trials=finished_job["budget"]["max_trials"]))
    second = service.get("/jobs", page_size=500, page_token=first["next_page_token"])
    assert [job["id"] for job in first["items"] + second["items"]] == whole


def test_best_and_record(service: Service, finished_job: dict[str, Any]) -> None:
    (task,) = finished_job["tasks"]
    workload = service.get(f"/workloads/{task['workload_hash']}")
    best = service.get(f"/workloads/{task['workload_hash']}/best")
    assert workload["args"] == [{"shape": [64, 64], "dtype": "float32"}] * 3
    assert workload["bests"] == [best]
    assert workload["records"] == len(service.items("/records", workload_hash=task["workload_hash"]))
    assert best["record_id"] == task["record_id"]
    assert best["target"] == finished_job["target"]
    assert best in service.items("/bests", target="auto")

    record = service.get(f"/records/{task['record_id']}")
    assert record["script_before"] == workload["script"]
    assert record["trace"] == best["trace"]
    assert record["script_after"] != record["script_before"]
    assert record["run_secs"]
    assert record["median_us"] == pytest.approx(float(np.median(record["run_secs"])) * 1e6)
    assert record["device"]["target"] == finished_job["target"]
    assert record["device"]["threads"] >= 1
    assert record["tvm_version"] == service.http.get("/version").json()["tvm"]
    assert record["worker"]
    certificate = record["certificate"]
    assert certificate == best["certificate"]
    assert certificate["rounds"] == len(certificate["best_run_secs"]) == len(certificate["baseline_run_secs"]) >= 5
    assert certificate["best_us"] == pytest.approx(float(np.median(certificate["best_run_secs"])) * 1e6)
    assert certificate["speedup"] == pytest.approx(certificate["baseline_us"] / certificate["best_us"])
    assert certificate["max_rel_error"] >= 0
    assert certificate["library"]["name"].startswith("NumPy")
    assert 5 <= len(certificate["library"]["run_secs"]) <= certificate["rounds"]
    assert task["library"] == certificate["library"]
    # The trace is TVM's own: applied here, it gives the program that the record shows.
    module = service.get(f"/workloads/{task['workload_hash']}/module")
    schedule = tvm.s_tir.Schedule(tvm.ir.load_json(module["data"]))
    tvm.s_tir.schedule.Trace.apply_json_to_schedule(record["trace"], schedule)
    tvm.ir.assert_structural_equal(schedule.mod, tvm.script.from_source(record["script_after"]))


def test_module_of_a_function_computes(service: Service, finished_job: dict[str, Any]) -> None:
    answer = service.get(f"/jobs/{finished_job['id']}/module")
    assert (answer["applied"], answer["missed"]) == (["main"], [])
    tuned = tvm.compile(tvm.ir.load_json(answer["data"]), target=_target(finished_job))
    left, right = (DRAW.standard_normal((64, 64), dtype="float32") for _ in range(2))
    out = tvm.runtime.tensor(np.full((64, 64), np.nan, "float32"))
    tuned["main"](tvm.runtime.tensor(left), tvm.runtime.tensor(right), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(left @ right, 0), rtol=1e-4, atol=1e-3)


def test_module_of_a_model_computes(service: Service, finished_model: dict[str, Any]) -> None:
    assert len(finished_model["tasks"]) == 2
    assert all(task["trials"] > 0 for task in finished_model["tasks"])
    check_ledger(service, finished_model)
    answer = service.get(f"/jobs/{finished_model['id']}/module")
    assert len(answer["applied"]) == 2
    model = tvm.ir.load_json(answer["data"])
    machine = relax.VirtualMachine(tvm.compile(model, target=_target(finished_model)), tvm.cpu())
    values = inputs()
    got = machine["main"](*(tvm.runtime.tensor(value) for value in values.values()))
    np.testing.assert_allclose(got.numpy(), scores(**values), rtol=1e-3, atol=1e-3)


def test_submitted_json_is_the_same_workload(service: Service, finished_job: dict[str, Any]) -> None:
    """TVM's JSON of a program that was sent as TVMScript is answered from that search."""
    data = tvm.ir.save_json(tvm.script.from_source(product_relu(64)))
    again = service.finished(service.submit({"format": "tvm-json", "data": data}, trials=12))
    assert again["tasks"][0]["workload_hash"] == finished_job["tasks"][0]["workload_hash"]
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


def test_the_walls_around_a_program_can_be_read(service: Service, finished_job: dict[str, Any]) -> None:
    level = service.http.get("/readyz").json()["sandbox"]
    assert level in ("namespaces", "landlock", "none")
    (task,) = finished_job["tasks"]
    record = service.get(f"/records/{task['record_id']}")
    assert record["sandbox"] == record["certificate"]["sandbox"] == level
    measured = [each for each in service.items("/records", workload_hash=task["workload_hash"]) if each["job_id"]]
    assert {each["sandbox"] for each in measured} == {level}
    assert {worker["sandbox"] for worker in service.items("/workers")} == {level}


@pytest.mark.usefixtures("finished_job")
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
    known = {
        *("/jobs", "/jobs/{job_id}", "/jobs/{job_id}/cancel", "/jobs/{job_id}/events", "/jobs/{job_id}/module"),
        *("/jobs/{job_id}/trials", "/workloads", "/workloads/{workload_hash}", "/workloads/{workload_hash}/best"),
        *("/records", "/records/{record_id}", "/records/import", "/records/export", "/bests", "/workers", "/targets"),
        *("/overview", "/leaderboard", "/leaderboard.csv", "/leaderboard/filters", "/jobs/preview"),
        *("/jobs/{job_id}/resubmit", "/jobs/{job_id}/chrome-trace", "/jobs/{job_id}/records"),
        *(f"/workloads/{{workload_hash}}/{what}" for what in ("history", "decisions", "predictions", "roofline")),
        *("/records/{record_id}/assembly", "/workers/{worker_id}/readmit", "/device-classes", "/leases"),
        *("/workers/{worker_id}/drain", "/workers/{worker_id}/undrain"),
        *("/me", "/session", "/login-codes", "/tokens", "/tokens/{token_id}", "/guest-links", "/workloads/lookup"),
        *("/use", "/users", "/users/{name}", "/users/{name}/use", "/audit"),
        *("/webhooks", "/webhooks/{webhook_id}", "/webhooks/{webhook_id}/deliveries", "/webhooks/{webhook_id}/test"),
    }
    assert {f"/api/v1{path}" for path in known} <= set(description["paths"])
    references = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(description)))
    assert references == references & set(description["components"]["schemas"])
    operations = [operation for path in description["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
