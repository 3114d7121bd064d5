"""Jobs over HTTP: preview, resubmission, timelines, downloads."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

from tests.integration.service.conftest import Api
from tests.support.perceptron import PERCEPTRON
from tests.support.played_fleet import MACHINE, ROUNDS
from tests.support.programs import LIBRARY_ONLY, product

SYMBOLIC = """\
from tvm.script import ir as I
from tvm.script import relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32")) -> R.Tensor(("n", 16), "float32"):
        with R.dataflow():
            out = R.nn.relu(x)
            R.output(out)
        return out
"""


def payload(script: str, **fields: Any) -> dict[str, Any]:
    return {"module": {"format": "tvmscript", "data": script}, **fields}


def test_a_preview_stores_nothing(api: Api, job: dict[str, Any]) -> None:
    before = api.get("/overview")
    found = api.post("/jobs/preview", payload(PERCEPTRON))
    assert found["name"] == "fused_matmul1_add1 and 1 more"
    assert (found["device_class"], found["device_model"]) == (MACHINE.id, "Intel Haswell, 2 cores")
    assert {task["op"] for task in found["tasks"]} == {"matmul"}
    assert all(task["best"] is None and not task["answered"] for task in found["tasks"])
    assert all(task["flop"] > 0 and task["weight"] == 1 for task in found["tasks"])
    assert api.get("/overview") == before
    assert before["jobs_finished"] >= 1


def test_a_preview_tells_what_is_known(api: Api, job: dict[str, Any]) -> None:
    body = payload(product(32), budget={"max_trials": 20})
    (task,) = api.post("/jobs/preview", body)["tasks"]
    assert task["workload_hash"] == job["tasks"][0]["workload_hash"]
    assert task["best"]["record_id"] == job["tasks"][0]["record_id"]
    assert task["answered"]
    (forced,) = api.post("/jobs/preview", body | {"force": True})["tasks"]
    assert not forced["answered"]
    (larger,) = api.post("/jobs/preview", payload(product(32), budget={"max_trials": 21}))["tasks"]
    assert larger["best"]
    assert not larger["answered"]


def test_a_preview_and_a_job_say_how_many_trials_the_model_deserves(api: Api) -> None:
    assert api.post("/jobs/preview", payload(PERCEPTRON))["suggested_trials"] == 2 * 16
    short, enough = (api.submit(PERCEPTRON, budget={"max_trials": trials}) for trials in (31, 32))
    assert short["suggested_trials"] == enough["suggested_trials"] == 32
    assert sum("--max-trials 32" in note for note in short["notes"]) == 1
    assert not any("--max-trials" in note for note in enough["notes"])


def test_a_model_that_is_known_well_deserves_no_trials(api: Api, job: dict[str, Any]) -> None:
    body = payload(product(32), budget={"max_trials": 4})
    assert api.post("/jobs/preview", body)["suggested_trials"] == 0
    assert api.post("/jobs/preview", body | {"force": True})["suggested_trials"] == 16


def test_a_preview_says_what_is_left_alone_and_what_was_translated(api: Api) -> None:
    script = """
@I.ir_module
class Module:
    @T.prim_func
    def add(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (8,), "float32")
        B = T.match_buffer(b, (8,), "float32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0
"""
    found = api.post("/jobs/preview", payload(script))
    assert found["notes"]
    assert [task["op"] for task in found["tasks"]] == ["elementwise"]
    library = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 16), "float32")) -> R.Tensor((4, 16), "float32"):
        with R.dataflow():
            seen = R.call_dps_packed("a.library", (x,), out_ty=R.Tensor((4, 16), "float32"))
            out = R.nn.relu(seen)
            R.output(out)
        return out
"""
    assert any("a.library" in note for note in api.post("/jobs/preview", payload(library))["left_alone"])
    made = api.submit(library)
    assert any("a.library" in note for note in made["notes"])


def test_a_preview_of_nothing_to_tune(api: Api) -> None:
    found = api.post("/jobs/preview", payload(LIBRARY_ONLY))
    assert found["tasks"] == []
    assert found["left_alone"]


def test_a_preview_refuses_as_a_submission_would(api: Api) -> None:
    problem = api.post("/jobs/preview", payload("import os"), status=422)
    assert problem["type"] == "urn:loopwright:invalid-module"


def test_a_job_is_submitted_anew(api: Api, job: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": "again"}
    again = api.post(f"/jobs/{job['id']}/resubmit", {}, 202, headers)
    assert again["id"] != job["id"]
    for kept in ("name", "target", "device_class", "budget", "seed", "priority"):
        assert again[kept] == job[kept]
    assert again["tasks"][0]["workload_hash"] == job["tasks"][0]["workload_hash"]
    assert api.post(f"/jobs/{job['id']}/resubmit", {}, 202, headers)["id"] == again["id"]
    changed = api.post(f"/jobs/{job['id']}/resubmit", {"budget": {"max_trials": 5}, "seed": 7, "force": True}, 202)
    assert (changed["budget"]["max_trials"], changed["seed"]) == (5, 7)
    assert api.database.jobs.get(changed["id"]).force
    assert api.post("/jobs/nothing/resubmit", {}, 404)["type"] == "urn:loopwright:not-found"


def test_a_budget_says_what_is_enough_and_is_kept_by_a_job_submitted_anew(api: Api) -> None:
    budget = {"max_trials": 8, "max_seconds": 60.0, "max_device_seconds": 20.0, "target_latency_us": 123.4}
    made = api.submit(product(34), budget=budget | {"until": "plateau"})
    again = api.post(f"/jobs/{made['id']}/resubmit", {}, 202)
    assert again["budget"] == made["budget"] == budget | {"until": "plateau"}
    problem = api.post("/jobs/preview", payload(product(34), budget={"until": "dawn"}), status=422)
    assert problem["type"] == "urn:loopwright:invalid-request"


def test_new_functions_raise_the_seconds_of_a_job(api: Api, job: dict[str, Any]) -> None:
    def limit(module: str, seconds: float | None, **fields: Any) -> float | None:
        made = api.submit(module, budget={"max_trials": 4, "max_seconds": seconds}, **fields)
        found: float | None = made["budget"]["max_seconds"]
        return found

    assert limit(PERCEPTRON, 45, seconds_per_function=30) == 2 * 30
    assert limit(PERCEPTRON, None, seconds_per_function=30) == 2 * 30
    assert limit(PERCEPTRON, 90, seconds_per_function=30) == 90
    assert limit(PERCEPTRON, 45) == 45
    assert limit(product(32), 45, seconds_per_function=90) == 45, "an earlier search answers its function"
    assert limit(product(32), 45, seconds_per_function=90, force=True) == 90


def test_a_job_for_several_shapes_is_submitted_anew(api: Api) -> None:
    first = api.submit(SYMBOLIC, shapes=[{"n": 2}, {"n": 4}], name="symbolic")
    again = api.post(f"/jobs/{first['id']}/resubmit", {}, 202)
    hashes = [[task["workload_hash"] for task in each["tasks"]] for each in (first, again)]
    assert len(hashes[0]) == 2
    assert hashes[0] == hashes[1]


def test_a_job_is_described_by_its_owner(api: Api, job: dict[str, Any]) -> None:
    made = api.submit(product(35), tags=["b", "a", "b"], description="line 1\nline 2")
    assert (made["tags"], made["description"]) == (["a", "b"], "line 1\nline 2")
    assert api.post(f"/jobs/{made['id']}/resubmit", {}, 202)["tags"] == ["a", "b"]
    path = f"/api/v1/jobs/{made['id']}"
    changed = api.http.patch(path, json={"tags": ["c"]}, headers=api.headers).json()
    assert (changed["tags"], changed["description"]) == (["c"], "line 1\nline 2")
    assert [each["id"] for each in api.get("/jobs", tag="c")["items"]] == [made["id"]]
    for refused in ({"tags": ["x" * 65]}, {"tags": ["a\nb"]}, {"tags": ["a"] * 17}, {"description": "x" * 4_001}):
        assert api.http.patch(path, json=refused, headers=api.headers).status_code == 422, refused
    assert api.http.patch("/api/v1/jobs/nothing", json={}, headers=api.headers).status_code == 404
    names = [each["name"] for each in api.get("/jobs", sort="name", page_size=500)["items"]]
    assert names == sorted(names)
    by_gain = [each["id"] for each in api.get("/jobs", sort="gain", page_size=500)["items"]]
    assert by_gain.index(job["id"]) < by_gain.index(made["id"])  # which has gained nothing
    assert api.http.get("/api/v1/jobs", params={"sort": "luck"}, headers=api.headers).status_code == 422


def test_a_finished_job_has_its_phases_and_figures(job: dict[str, Any]) -> None:
    assert [phase["activity"] for phase in job["phases"]] == ["in the queue"] or job["phases"] == []
    assert job["activity"] is None
    [task] = job["tasks"]
    assert task["finished_at"]
    assert job["model"]["interval"] == task["interval"]
    assert job["model"]["searched_us"] is not None


def test_jobs_by_state(api: Api, job: dict[str, Any]) -> None:
    waiting = api.submit(product(33))
    assert [each["id"] for each in api.get("/jobs", state="queued")["items"]] == [waiting["id"]]
    ids = {each["id"] for each in api.get("/jobs", state=["queued", "succeeded"])["items"]}
    assert {waiting["id"], job["id"]} <= ids
    assert waiting["progress"]["time_left_s"] is None


def test_shares_of_a_finished_job(job: dict[str, Any]) -> None:
    (task,) = job["tasks"]
    assert (task["model_share"], task["budget_share"]) == (1.0, 1.0)
    assert job["device_class"] == MACHINE.id


def test_the_way_of_each_trial(api: Api, job: dict[str, Any]) -> None:
    trials = api.get(f"/jobs/{job['id']}/trials", page_size=500)["items"]
    assert [span["stage"] for span in trials[0]["spans"]] == ["build", "measure"]
    assert [span["stage"] for span in trials[1]["spans"]] == ["propose", "build", "measure"]
    assert trials[1]["spans"][1] == {
        "stage": "build",
        "worker": "host/builder 0",
        "started_at": "1970-01-01T00:00:01Z",
        "finished_at": "1970-01-01T00:00:02Z",
    }
    events = api.get(f"/jobs/{job['id']}/chrome-trace")["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert sum(event["cat"] == "propose" for event in slices) == ROUNDS
    assert sum(event["cat"] == "measure" for event in slices) == len(trials)


def test_the_events_say_when(api: Api, job: dict[str, Any]) -> None:
    with api.http.stream("GET", f"/api/v1/jobs/{job['id']}/events", headers=api.headers) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
    told = [json.loads(line) for line in lines]
    assert all(each["at"] for each in told)
    assert [span["stage"] for span in told[-5]["spans"]] == ["propose", "build", "measure"]


def test_what_a_job_measured_as_tvms_pair(api: Api, job: dict[str, Any]) -> None:
    answer = api.http.get(f"/api/v1/jobs/{job['id']}/records", headers=api.headers)
    assert job["id"] in answer.headers["Content-Disposition"]
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        records = tar.extractfile("database_tuning_record.json")
        workloads = tar.extractfile("database_workload.json")
        assert records is not None
        assert workloads is not None
        # The baseline has no trace, and so no line.
        assert len(records.read().splitlines()) == 4 * ROUNDS
        assert len(workloads.read().splitlines()) == 1
    assert api.http.get("/api/v1/jobs/nothing/records", headers=api.headers).status_code == 404
