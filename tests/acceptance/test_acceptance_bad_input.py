"""What users get wrong: every error says what to do, and nothing of it is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import tvm

from tests.support.programs import ATTACK, CALLS_OUT, MM_RELU, NO_BLOCK, SYMBOLIC, product
from tests.support.service import ROOT, Service


def _other_version() -> str:
    graph = json.loads(tvm.ir.save_json(tvm.IRModule({"main": tvm.script.from_source(product(8, 8, 8))})))
    graph["metadata"]["tvm_version"] = "0.11.1"
    return json.dumps(graph)


def _calls_out_json() -> str:
    """The same as JSON, which no syntax check sees."""
    return tvm.ir.save_json(tvm.IRModule({"main": tvm.script.from_source(CALLS_OUT)}))


def _script(data: str) -> dict[str, Any]:
    return {"module": {"format": "tvmscript", "data": data}}


def _json(data: str) -> dict[str, Any]:
    return {"module": {"format": "tvm-json", "data": data}}


GOOD = _script(product(8, 8, 8))

BODIES: dict[str, tuple[dict[str, Any], str, str]] = {
    # name: body, the problem's kind, what its detail must hold
    "prose": (_script("please make my model fast"), "invalid-module", "line 1"),
    "other Python": (_script("import os\nos.system('true')\n"), "invalid-module", "import"),
    "old dialect": (
        _script("@T.prim_func\ndef main(a: T.handle):\n    with T.block('x'):\n        pass\n"),
        "invalid-module",
        "handle",
    ),
    "empty module": (_script("@I.ir_module\nclass M:\n    pass\n"), "invalid-module", "no schedulable function"),
    "nothing to schedule": (_script(NO_BLOCK), "invalid-module", "T.sblock"),
    "calls out": (_script(CALLS_OUT), "invalid-module", "call_extern"),
    "calls out, as JSON": (_json(_calls_out_json()), "invalid-module", "call_extern"),
    "another TVM's JSON": (_json(_other_version()), "unsupported-version", "0.11.1"),
    "garbage JSON": (_json('{"nodes": [{"type": "ir.IRModule", "data": {"functions": 7}}], "root_index": 0}'), "", ""),
    "no JSON": (_json("]["), "invalid-module", "JSON"),
    "TVMScript called JSON": (_json(MM_RELU), "invalid-module", "JSON"),
    "JSON called TVMScript": (_script(_other_version()), "invalid-module", ""),
    "symbolic shape": (_script(SYMBOLIC), "invalid-module", 'shapes={"n": 128}'),
    "unknown extent": (_script(SYMBOLIC) | {"shapes": {"m": 4}}, "invalid-module", "n"),
    "empty extent": (_script(SYMBOLIC) | {"shapes": {"n": 0}}, "invalid-module", "n"),
    "unknown target": (GOOD | {"target": "quantum"}, "invalid-target", "quantum"),
    "unknown target option": (GOOD | {"target": {"kind": "llvm", "sped": 1}}, "invalid-target", "sped"),
    "no target": (GOOD | {"target": ""}, "invalid-target", ""),
    "unknown processor": (GOOD | {"target": "llvm -mcpu=abacus"}, "invalid-target", "abacus"),
    "another architecture": (
        GOOD | {"target": {"kind": "llvm", "mtriple": "riscv64-unknown-linux-gnu"}},
        "target-not-offered",
        "auto",
    ),
    "zero budget": (GOOD | {"budget": {"max_trials": 0}}, "invalid-request", "budget.max_trials"),
    "negative budget": (GOOD | {"budget": {"max_trials": -5}}, "invalid-request", "budget.max_trials"),
    "no time": (GOOD | {"budget": {"max_seconds": 0}}, "invalid-request", "budget.max_seconds"),
    "budget in words": (GOOD | {"budget": {"max_trials": "many"}}, "invalid-request", "budget.max_trials"),
    "unknown field": (GOOD | {"trails": 64}, "invalid-request", "trails"),
    "unknown field of the budget": (GOOD | {"budget": {"trials": 64}}, "invalid-request", "budget.trials"),
    "no module": ({"target": "auto"}, "invalid-request", "module"),
    "unknown format": ({"module": {"format": "onnx", "data": "x"}}, "invalid-request", "module.format"),
    "negative seed": (GOOD | {"seed": -1}, "invalid-request", "seed"),
    "long name": (GOOD | {"name": "n" * 201}, "invalid-request", "name"),
    "no traces": (GOOD | {"space": []}, "invalid-space", "trace"),
    "space of words": (GOOD | {"space": ["tile it"]}, "invalid-space", "as_json"),
    "space that calls out": (
        GOOD | {"space": [[[["UnsafeSetDType", ["b0"], [0, "float16"], []]], []]]},
        "invalid-space",
        "UnsafeSetDType",
    ),
    "space with a pragma": (
        GOOD | {"space": [[[["Annotate", ["b0", '"x"'], ["pragma_import_c"], []]], []]]},
        "invalid-space",
        "pragma_import_c",
    ),
    "space of another program": (
        GOOD | {"space": [[[["GetSBlock", [], ["nowhere", "main"], ["b0"]]], []]]},
        "invalid-space",
        "Cannot find a block",
    ),
}


def _stored(service: Service) -> tuple[list[str], list[str], str]:
    jobs = [job["id"] for job in service.items("/jobs")]
    workloads = [workload["hash"] for workload in service.items("/workloads")]
    counted = [line for line in service.http.get("/metrics").text.splitlines() if line.startswith("loopwright_jobs")]
    return jobs, workloads, "\n".join(counted)


@pytest.fixture
def nothing_stored(service: Service) -> Iterator[None]:
    before = _stored(service)
    yield
    assert _stored(service) == before


def _problem(answer: httpx.Response, status: int, kind: str = "", detail: str = "") -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["type"].endswith(kind)
    assert len(problem["detail"]) > 10
    assert detail in problem["detail"]
    # Its reader is a user: no stack, no path of the server.
    assert "Traceback" not in problem["detail"]
    assert "site-packages" not in problem["detail"]
    return problem


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("name", BODIES)
def test_bad_submission(service: Service, name: str) -> None:
    body, kind, detail = BODIES[name]
    _problem(service.http.post("/api/v1/jobs", json=body), 422, kind, detail)


@pytest.mark.usefixtures("nothing_stored")
def test_attack_text_is_refused_unrun(service: Service, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    body = _script(ATTACK.replace("{marker}", str(marker)))
    _problem(service.http.post("/api/v1/jobs", json=body), 422, "invalid-module", "line 5")
    assert not marker.exists()


@pytest.mark.usefixtures("nothing_stored")
def test_targets_that_no_worker_offers(service: Service) -> None:
    kinds = {offer["target"]["kind"] for offer in service.items("/targets")}
    flags = Path("/proc/cpuinfo").read_text().split()
    wanted: list[Any] = ["nvidia/nvidia-h100"] if "cuda" not in kinds else []
    # Each of these makers' processors has instructions that the other's have not.
    wanted.append({"kind": "llvm", "mcpu": "sapphirerapids" if "amx_tile" not in flags else "znver4"})
    for target in wanted:
        _problem(service.http.post("/api/v1/jobs", json=GOOD | {"target": target}), 422, "target-not-offered", "auto")


def test_symbolic_shape_is_fine_with_shapes(service: Service) -> None:
    job = service.tuned(SYMBOLIC, shapes={"n": 32}, trials=4)
    workload = service.get(f"/workloads/{job['tasks'][0]['workload_hash']}")
    assert workload["args"] == [{"shape": [32, 64], "dtype": "float32"}] * 2


@pytest.mark.usefixtures("nothing_stored")
def test_body_over_the_limit(service: Service) -> None:
    body = json.dumps(_script("#" * (33 * 2**20))).encode()
    headers = {"Content-Type": "application/json"}
    _problem(service.http.post("/api/v1/jobs", content=body, headers=headers), 413, "body-too-large", "32 MiB")
    chunks = (body[start : start + 2**20] for start in range(0, len(body), 2**20))
    _problem(service.http.post("/api/v1/jobs", content=chunks, headers=headers), 413, "body-too-large", "32 MiB")


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '{"module": ', "\x00", '{"a": NaN}'])
def test_malformed_body(service: Service, text: str) -> None:
    answer = service.http.post("/api/v1/jobs", content=text, headers={"Content-Type": "application/json"})
    _problem(answer, 422, "invalid-request")


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic dXNlcjp4", "Bearer \u00e9"])
def test_wrong_token(service: Service, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode("utf-8")}
    with httpx.Client(base_url=service.url, trust_env=False) as stranger:
        for method, path in (("POST", "/api/v1/jobs"), ("GET", "/api/v1/jobs"), ("GET", "/api/v1/workers")):
            answer = stranger.request(method, path, headers=headers, json=GOOD if method == "POST" else None)
            problem = _problem(answer, 401, "unauthorised", "Authorization: Bearer")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert service.http.headers["Authorization"].split()[1] not in json.dumps(problem)


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("method", "path", "status", "detail"),
    [
        ("GET", "/api/v1/jobs/nothing", 404, "nothing"),
        ("POST", "/api/v1/jobs/nothing/cancel", 404, "nothing"),
        ("GET", "/api/v1/jobs/nothing/trials", 404, "nothing"),
        ("GET", "/api/v1/jobs/nothing/events", 404, "nothing"),
        ("GET", "/api/v1/jobs/nothing/module", 404, "nothing"),
        ("GET", "/api/v1/records/nothing", 404, "nothing"),
        ("GET", "/api/v1/workloads/nothing", 404, "nothing"),
        ("GET", "/api/v1/workloads/nothing/best", 404, "nothing"),
        ("GET", "/api/v1/workloads/nothing/module", 404, "nothing"),
        ("GET", "/api/v1/nonsense", 404, "/api/v1/nonsense"),
        ("POST", "/api/v1/nonsense", 404, ""),
        ("GET", "/api/v2/jobs", 404, "/api/v2/jobs"),
        ("PUT", "/api/v1/jobs", 405, ""),
        ("DELETE", "/api/v1/jobs/nothing", 405, ""),
        ("POST", "/healthz", 405, ""),
        ("GET", "/api/v1/records?sort=colour", 422, "sort"),
        ("GET", "/api/v1/records?target=quantum", 422, "quantum"),
        ("GET", "/api/v1/bests?target=quantum", 422, "quantum"),
    ],
)
def test_wrong_address(service: Service, method: str, path: str, status: int, detail: str) -> None:
    answer = service.http.request(method, path)
    _problem(answer, status, "", detail)
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize("path", ["/jobs", "/records", "/bests", "/workloads"])
@pytest.mark.parametrize(
    "query", ["page_token=x", "page_token=", "page_size=0", "page_size=-1", "page_size=501", "page_size=x"]
)
def test_wrong_page(service: Service, path: str, query: str) -> None:
    _problem(service.http.get(f"/api/v1{path}?{query}"), 422, "", "page_")


@pytest.mark.usefixtures("finished_job", "finished_model")
def test_page_token_of_another_list(service: Service) -> None:
    token = service.get("/jobs", page_size=1)["next_page_token"]
    _problem(service.http.get(f"/api/v1/workloads?page_token={token}"), 422, "invalid-page", "page_token")


@pytest.mark.parametrize("value", ["x", "-1", str(2**70)])
def test_wrong_event_to_resume_from(service: Service, finished_job: dict[str, Any], value: str) -> None:
    answer = service.http.get(f"/api/v1/jobs/{finished_job['id']}/events", headers={"Last-Event-ID": value})
    _problem(answer, 422, "invalid-request", "last-event-id")


def test_a_second_service_on_the_same_port_is_refused(service: Service, tmp_path: Path) -> None:
    """It names the port, and touches nothing."""
    other = subprocess.run(
        [sys.executable, "-m", "service", "--data-dir", str(tmp_path / "other"), "--port", str(service.port)],
        cwd=ROOT,
        env=service.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert other.returncode != 0
    assert other.stdout == ""
    assert str(service.port) in other.stderr
    assert service.http.get("/readyz").status_code == 200
