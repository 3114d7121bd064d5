"""What the dashboard's pages ask: overview, best schedules, workload, record, fleet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest

from loopwright import schemas
from loopwright.codegen.kinds import LoopBound
from service.overview.endpoints import _csv
from tests.integration.service.conftest import Api, played, running, settings_in
from tests.support.played_fleet import MACHINE, MEASURED_STATE, RACED_STATE, ROUNDS, WORKER
from tests.support.programs import product
from tuner.codec import encode


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An application of its own: what is counted is what these tests made."""
    with running(settings_in(tmp_path_factory.mktemp("api"))) as api:
        yield api


@pytest.fixture(scope="module")
def job(api: Api) -> dict[str, Any]:
    return played(api)


def test_overview(api: Api, job: dict[str, Any]) -> None:
    found = api.get("/overview")
    assert found["bests"] == 1
    assert (found["workers_alive"], found["workers_total"], found["workers_quarantined"]) == (1, 1, 0)
    assert found["trials"] == found["trials_last_hour"] == 4 * ROUNDS
    assert found["time_saved_us"] == pytest.approx(1000 - 100)
    assert [row["record_id"] for row in found["recent_bests"]] == [job["tasks"][0]["record_id"]]


def test_a_row_of_the_best_schedules(api: Api, job: dict[str, Any]) -> None:
    found = api.get("/best-schedules")
    assert found["total"] == 1
    (row,) = found["items"]
    (task,) = job["tasks"]
    assert row["op"] == "matmul"
    assert row["args"][0] == {"shape": [32, 64], "dtype": "float32"}
    assert (row["job_id"], row["job_name"], row["record_id"]) == (job["id"], "a product", task["record_id"])
    assert (row["baseline_us"], row["best_us"], row["speedup"]) == pytest.approx((1000, 100, 10))
    assert row["spread"] == 0.0
    record = api.get(f"/records/{task['record_id']}")
    certificate = record["certificate"]
    assert task["source"]
    named = (row, record, api.get(f"/workloads/{task['workload_hash']}"))
    assert {each["source"] for each in named} == {task["source"]}
    (point,) = api.get(f"/workloads/{task['workload_hash']}/history")["items"]
    assert row["interval"] == task["interval"] == point["interval"] == certificate["interval"]
    assert certificate["interval"]["value"] == pytest.approx(10)
    # 3 x 32 x 64 x 64 operations in 100 microseconds, of 4e9 a second.
    assert row["peak_share"] == pytest.approx(3 * 32 * 64 * 64 / 1e-4 / 4e9)
    assert (row["device_class"], row["device_model"]) == (MACHINE.id, "Intel Haswell, 2 cores")


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("query", "total"),
    [
        ({"q": "MAIN"}, 1),
        ({"q": "matm"}, 1),
        ({"q": "nothing"}, 0),
        ({"target": "llvm"}, 1),
        ({"target": "cuda"}, 0),
        ({"op": "matmul", "device_class": MACHINE.id}, 1),
        ({"op": "conv2d"}, 0),
        ({"sort": "peak", "order": "asc"}, 1),
        ({"offset": 5}, 1),
    ],
)
def test_the_best_schedules_narrow(api: Api, query: dict[str, Any], total: int) -> None:
    assert api.get("/best-schedules", **query)["total"] == total


def test_the_best_schedules_refuse_what_they_have_not(api: Api) -> None:
    answer = api.http.get("/api/v1/best-schedules", params={"sort": "luck"}, headers=api.headers)
    assert answer.status_code == 422
    assert "sort" in answer.json()["detail"]


@pytest.mark.usefixtures("job")
def test_the_best_schedules_as_a_file(api: Api) -> None:
    answer = api.http.get("/api/v1/best-schedules.csv", params={"op": "matmul"}, headers=api.headers)
    assert answer.headers["Content-Type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(answer.text))
    (shown,) = api.get("/best-schedules")["items"]
    assert row["args"] == "float32[32x64] float32[64x64] float32[32x64]"
    assert float(row["best_us"]) == shown["best_us"]
    assert [float(end) for end in row["interval"].split()] == [shown["interval"][end] for end in ("low", "high")]
    assert set(row) == set(shown)
    nothing = api.http.get("/api/v1/best-schedules.csv", params={"op": "none"}, headers=api.headers)
    assert nothing.text.splitlines() == answer.text.splitlines()[:1]


def test_a_name_is_no_formula(api: Api, job: dict[str, Any]) -> None:
    (shown,) = api.get("/best-schedules")["items"]
    text = "".join(_csv([schemas.BestSchedule.model_validate(shown | {"name": "=1+1"})]))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["name"] == "'=1+1"


@pytest.mark.usefixtures("job")
def test_what_the_best_schedules_can_be_narrowed_to(api: Api) -> None:
    found = api.get("/best-schedules/filters")
    assert found["ops"] == [{"op": "matmul", "bests": 1}]
    assert [each["device_class"] for each in found["device_classes"]] == [MACHINE.id]


def test_history(api: Api, job: dict[str, Any]) -> None:
    (task,) = job["tasks"]
    (point,) = api.get(f"/workloads/{task['workload_hash']}/history")["items"]
    assert (point["record_id"], point["job_name"], point["is_best"]) == (task["record_id"], "a product", True)
    assert point["best_us"] == pytest.approx(100)
    assert api.http.get("/api/v1/workloads/none/history", headers=api.headers).status_code == 404


def test_decisions(api: Api, job: dict[str, Any]) -> None:
    path = f"/workloads/{job['tasks'][0]['workload_hash']}/decisions"
    found = api.get(path)
    assert found["device_class"] == MACHINE.id
    assert len(found["rows"]) == 4 * ROUNDS
    assert {len(row["values"]) for row in found["rows"]} == {len(found["columns"])}
    latencies = [row["median_us"] for row in found["rows"]]
    assert latencies == sorted(latencies)
    assert found["rows"][0]["certified"]
    assert sum(column["importance"] for column in found["columns"]) == pytest.approx(1.0)
    assert "C: tile i[3]" in {column["name"] for column in found["columns"]}
    assert len(api.get(path, limit=3)["rows"]) == 3
    assert api.get(path) == found


def test_predictions(api: Api, job: dict[str, Any]) -> None:
    found = api.get(f"/workloads/{job['tasks'][0]['workload_hash']}/predictions", device_class=MACHINE.id)
    assert [round["number"] for round in found["rounds"]] == list(range(1, ROUNDS + 1))
    assert {len(round["pairs"]) for round in found["rounds"]} == {4}
    assert [round["rank_correlation"] for round in found["rounds"]] == pytest.approx([1.0] * ROUNDS)
    assert found["rank_correlation"] == pytest.approx(1.0)
    assert found["rounds"][0]["job_id"] == job["id"]


def test_roofline(api: Api, job: dict[str, Any]) -> None:
    found = api.get(f"/workloads/{job['tasks'][0]['workload_hash']}/roofline")
    flop, moved = 3 * 32 * 64 * 64, 4 * (32 * 64 + 64 * 64 + 32 * 64)
    assert (found["flop"], found["bytes"], found["dtype"]) == (flop, moved, "float32")
    assert found["intensity"] == pytest.approx(flop / moved)
    assert (found["peaks"]["flops"], found["peaks"]["bytes_per_s"]) == (4e9, 1e10)
    baseline, best = found["points"]
    assert (baseline["name"], best["name"]) == ("baseline", "best")
    assert best["flops"] == pytest.approx(flop / 1e-4)
    assert best["peak_share"] == pytest.approx(10 * baseline["peak_share"])
    assert (found["limit"], found["roof_us"]) == ("arithmetic", pytest.approx(1e6 * flop / 4e9))
    assert [cache["name"] for cache in found["peaks"]["caches"]] == ["L1", "L2"]


def test_bottlenecks(api: Api, job: dict[str, Any]) -> None:
    (task,) = job["tasks"]
    found = api.get(f"/jobs/{job['id']}/bottlenecks")
    (function,) = found["functions"]
    least = 1e6 * 3 * 32 * 64 * 64 / 4e9
    assert (function["record_id"], function["calls"], function["limit"]) == (task["record_id"], 1, "arithmetic")
    assert (function["us"], function["roof_us"]) == pytest.approx((100, least))
    assert function["left_us"] == found["left_us"] == pytest.approx(100 - least)
    assert (found["us"], found["unknown_us"]) == (job["model"]["best_us"], 0)
    decisions = api.get(f"/workloads/{task['workload_hash']}/decisions", device_class=MACHINE.id)
    tiles = [column for column in decisions["columns"] if column["kind"] in ("tile", "categorical", "location")]
    most = max(tiles, key=lambda column: column["importance"])
    decision = function["decision"]
    assert (decision["name"], decision["importance"]) == (most["name"], pytest.approx(most["importance"]))
    assert decision["trials"] == 4 * ROUNDS
    assert float(decision["value"]) == decisions["rows"][0]["values"][decisions["columns"].index(most)]
    assert api.http.get("/api/v1/jobs/none/bottlenecks", headers=api.headers).status_code == 404
    assert (function["undecided"], found["untimed"]) == (None, 0)
    waiting = api.submit(product(36))
    none = api.get(f"/jobs/{waiting['id']}/bottlenecks")
    assert (none["functions"], none["us"], none["untimed"]) == ([], None, 1)


@pytest.mark.parametrize("what", ["decisions", "predictions", "roofline"])
def test_a_workload_without_records_tells_nothing(api: Api, what: str) -> None:
    made = api.submit(product(35))
    path = f"/workloads/{made['tasks'][0]['workload_hash']}/{what}"
    found = api.get(path)
    assert found["device_class"] is None
    assert [found[name] for name in ("rows", "rounds", "points") if name in found] == [[]]
    unknown = api.http.get(f"/api/v1{path}", params={"device_class": "none"}, headers=api.headers)
    assert unknown.status_code == 404


def test_a_record_as_code_and_how_to_find_it_again(api: Api, job: dict[str, Any]) -> None:
    record = api.get(f"/records/{job['tasks'][0]['record_id']}")
    assert 'sch.get_sblock(name="C", func_name="main")' in record["trace_python"]
    assert record["job_name"] == "a product"
    show, again = record["reproduce"]["cli"]
    assert show == f"loopwright record show {record['id']}"
    assert again.startswith(f"loopwright job resubmit {job['id']} --max-trials 20 --seed 0")
    compile("\n".join(record["reproduce"]["sdk"]), "sdk", "exec")


def test_a_certificate_names_its_rejected_contenders(api: Api, job: dict[str, Any]) -> None:
    certificate = api.get(f"/records/{job['tasks'][0]['record_id']}")["certificate"]
    [rejected] = certificate["rejected"]
    assert (rejected["stage"], rejected["kind"]) == ("certify", "WRONG_RESULT")
    assert "0.5" in rejected["message"]
    assert api.get(f"/records/{rejected['record_id']}")["certified"] is False


@pytest.mark.whole
def test_a_record_and_its_certificate_say_in_what_state_the_gpu_was(api: Api, job: dict[str, Any]) -> None:
    record = api.get(f"/records/{job['tasks'][0]['record_id']}")
    assert record["device_state"] == encode(MEASURED_STATE)
    assert record["certificate"]["device_state"] == encode(RACED_STATE)


def test_assembly_of_a_record_and_of_the_baseline(api: Api, job: dict[str, Any]) -> None:
    found = api.get(f"/records/{job['tasks'][0]['record_id']}/assembly")
    assert found["language"] == "asm"
    texts = found["text"].splitlines()
    assert any(".globl" in text for text in texts)
    assert not any(texts[line["number"] - 1].lstrip().startswith((".globl", ".loc")) for line in found["lines"])
    program = found["program"].splitlines()
    linked = {line["program_line"] for line in found["lines"]} - {None}
    assert any("C[" in program[line - 1] for line in linked)
    assert len(found["sources"]) == len(program)
    hot = found["loops"][found["hot_loop"]]
    assert hot["model"]["instructions"] > 0
    assert hot["model"]["bound"] in set(LoopBound)
    assert api.get(f"/records/{job['tasks'][0]['record_id']}/assembly") == found
    records = api.get("/records", workload_hash=job["tasks"][0]["workload_hash"], page_size=500)["items"]
    (baseline,) = (record for record in records if record["is_baseline"])
    assert api.get(f"/records/{baseline['id']}/assembly")["text"] != found["text"]
    detail = api.get(f"/records/{baseline['id']}")
    assert detail["trace_python"] is None
    assert api.http.get("/api/v1/records/none/assembly", headers=api.headers).status_code == 404


@pytest.mark.usefixtures("job")
def test_device_classes_and_leases(api: Api) -> None:
    (found,) = api.get("/device-classes")["items"]
    assert (found["id"], found["workers"], found["bests"], found["peaks"]["flops"]) == (MACHINE.id, 1, 1, 4e9)
    assert api.get("/leases")["items"] == []


def test_a_drifting_worker_is_readmitted(api: Api) -> None:
    for secs in (1.0, 3.0, 3.0, 3.0):
        api.database.workers.add_check(WORKER, secs)
    api.database.workers.quarantine(WORKER, "too slow")
    (worker,) = api.get("/workers")["items"]
    assert worker["drift"]["ratio"] == pytest.approx(3.0)
    assert worker["drift"]["flagged"]
    assert [check["us"] for check in worker["drift"]["checks"]] == [1e6, 3e6, 3e6, 3e6]
    assert worker["quarantine"]["reason"] == "too slow"
    assert api.get("/overview")["workers_quarantined"] == 1
    back = api.post(f"/workers/{WORKER}/readmit")
    assert (back["drift"], back["quarantine"]) == (None, None)
    assert api.post("/workers/nobody/readmit", status=404)["type"] == "urn:loopwright:not-found"


def test_a_worker_is_drained_and_gets_work_again(api: Api) -> None:
    drained = api.post(f"/workers/{WORKER}/drain")
    assert drained["drain"]["state"] == "drained"
    assert not drained["drain"]["leaving"]
    assert api.post(f"/workers/{WORKER}/drain")["drain"]["since"] == drained["drain"]["since"]
    assert api.database.workers.drained() == {WORKER}
    assert api.post(f"/workers/{WORKER}/undrain")["drain"] is None
    for change in ("drain", "undrain"):
        assert api.post(f"/workers/nobody/{change}", status=404)["type"] == "urn:loopwright:not-found"
