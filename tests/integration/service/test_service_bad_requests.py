"""What users get wrong: every problem has its kind and names what to change, and nothing of the request is stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tvm

from service.problem_types import PROBLEM_TYPES, URN
from tests.integration.service.conftest import Api
from tests.support.programs import ATTACK, CALLS_OUT, MM_RELU, SYMBOLIC, product

DOCUMENTED = {(each.kind, each.status) for each in PROBLEM_TYPES}


def _script(data: str) -> dict[str, Any]:
    return {"module": {"format": "tvmscript", "data": data}}


def _json(data: str) -> dict[str, Any]:
    return {"module": {"format": "tvm-json", "data": data}}


def _saved(script: str) -> str:
    return tvm.ir.save_json(tvm.IRModule({"main": tvm.script.from_source(script)}))


GOOD = _script(product(8, 8, 8))
RISCV = {"kind": "llvm", "mtriple": "riscv64-unknown-linux-gnu"}
BODIES: dict[str, tuple[dict[str, Any], str, str]] = {
    # name: body, the problem's kind, what its detail must name
    "other Python": (_script("import os\nos.system('true')\n"), "invalid-module", "import"),
    "calls out, as JSON": (_json(_saved(CALLS_OUT)), "invalid-module", "call_extern"),
    "another TVM's JSON": (
        _json(_saved(product(8)).replace(tvm.__version__, "0.11.1")),
        "unsupported-version",
        "0.11.1",
    ),
    "TVMScript called JSON": (_json(MM_RELU), "invalid-module", "JSON"),
    "JSON called TVMScript": (_script(_saved(product(8))), "invalid-module", ""),
    "symbolic shape": (_script(SYMBOLIC), "invalid-module", 'shapes={"n": 128}'),
    "unknown extent": (_script(SYMBOLIC) | {"shapes": {"m": 4}}, "invalid-module", "n"),
    "empty extent": (_script(SYMBOLIC) | {"shapes": {"n": 0}}, "invalid-module", "n"),
    "unknown target": (GOOD | {"target": "quantum"}, "invalid-target", "quantum"),
    "unknown target option": (GOOD | {"target": {"kind": "llvm", "sped": 1}}, "invalid-target", "sped"),
    "no target": (GOOD | {"target": ""}, "invalid-target", ""),
    "unknown processor": (GOOD | {"target": "llvm -mcpu=abacus"}, "invalid-target", "abacus"),
    "another architecture": (GOOD | {"target": RISCV}, "target-not-offered", "auto"),
    "zero budget": (GOOD | {"budget": {"max_trials": 0}}, "invalid-request", "budget.max_trials"),
    "negative budget": (GOOD | {"budget": {"max_trials": -5}}, "invalid-request", "budget.max_trials"),
    "no time": (GOOD | {"budget": {"max_seconds": 0}}, "invalid-request", "budget.max_seconds"),
    "budget in words": (GOOD | {"budget": {"max_trials": "many"}}, "invalid-request", "budget.max_trials"),
    "unknown field": (GOOD | {"trails": 64}, "invalid-request", "trails"),
    "unknown field of the budget": (GOOD | {"budget": {"trials": 64}}, "invalid-request", "budget.trials"),
    "no module": ({"target": "auto"}, "invalid-request", "module"),
    "unknown format": ({"module": {"format": "onnx", "data": "x"}}, "invalid-request", "module.format"),
    "negative seed": (GOOD | {"seed": -1}, "invalid-request", "seed"),
    # Names reach terminals and pages.
    "long name": (GOOD | {"name": "n" * 201}, "invalid-request", "name"),
    "name with an escape": (GOOD | {"name": "\x1b[2J\x1b]8;;http://evil\x07x"}, "invalid-request", "name"),
    "name that turns around": (GOOD | {"name": "a\u202eb"}, "invalid-request", "name"),
    "name of two lines": (GOOD | {"name": "a\nb"}, "invalid-request", "name"),
    "long name of a function": (_script(product(16).replace("def main", f"def {'m' * 201}")), "invalid-module", "200"),
    "no traces": (GOOD | {"space": []}, "invalid-space", "trace"),
    "space of words": (GOOD | {"space": ["tile it"]}, "invalid-space", "as_json"),
    "space of another program": (
        GOOD | {"space": [[[["GetSBlock", [], ["nowhere", "main"], ["b0"]]], []]]},
        "invalid-space",
        "Cannot find a block",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_stored(api: Api, job: dict[str, Any]) -> Iterator[None]:
    def stored() -> list[Any]:
        metrics = api.http.get("/metrics").text.splitlines()
        return [
            *(api.get(path, page_size=500)["items"] for path in ("/jobs", "/workloads", "/records", "/tokens")),
            [line for line in metrics if line.startswith("loopwright_jobs")],
        ]

    assert job
    before = stored()
    yield
    assert stored() == before


def _problem(answer: Any, status: int, kind: str, token: str = "") -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["type"], problem["status"]) == (f"{URN}{kind}", status)
    assert (kind, status) in DOCUMENTED
    assert problem["title"]
    assert token in problem["detail"]
    assert problem["detail"].isprintable()
    # Its reader is a user: no stack, no path of the server.
    assert "Traceback" not in problem["detail"]
    assert "site-packages" not in problem["detail"]


def _post(api: Api, content: bytes | str) -> Any:
    return api.http.post("/api/v1/jobs", content=content, headers=api.headers | {"Content-Type": "application/json"})


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_submission_is_refused(api: Api, name: str) -> None:
    body, kind, token = BODIES[name]
    _problem(api.http.post("/api/v1/jobs", json=body, headers=api.headers), 422, kind, token)


def test_attack_text_is_refused_unrun(api: Api, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    body = _script(ATTACK.replace("{marker}", str(marker)))
    _problem(api.http.post("/api/v1/jobs", json=body, headers=api.headers), 422, "invalid-module", "line 5")
    assert not marker.exists()


def test_a_body_over_the_limit_is_refused(api: Api) -> None:
    _problem(_post(api, b"#" * (33 * 2**20)), 413, "body-too-large", "32 MiB")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "null", '{"module": ', "\x00", '{"a": NaN}', r'{"module": {}, "target": "\ud800"}']
)
def test_a_body_that_is_no_submission_is_refused(api: Api, text: str) -> None:
    _problem(_post(api, text), 422, "invalid-request")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_body_of_another_type_than_json_is_refused_with_its_type(api: Api, content_type: str) -> None:
    headers = api.headers | {"Content-Type": content_type}
    answer = api.http.post("/api/v1/jobs", content="{}", headers=headers)
    _problem(answer, 422, "invalid-request", f"body: its Content-Type is {content_type}; send JSON")


@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "token"),
    [
        ("GET", "/api/v1/jobs/nothing", 404, "not-found", "nothing"),
        ("POST", "/api/v1/jobs/nothing/cancel", 404, "not-found", "nothing"),
        ("GET", "/api/v1/jobs/nothing/trials", 404, "not-found", "nothing"),
        ("GET", "/api/v1/jobs/nothing/events", 404, "not-found", "nothing"),
        ("GET", "/api/v1/jobs/nothing/module", 404, "not-found", "nothing"),
        ("GET", "/api/v1/records/nothing", 404, "not-found", "nothing"),
        ("GET", "/api/v1/workloads/nothing", 404, "not-found", "nothing"),
        ("GET", "/api/v1/workloads/nothing/best", 404, "not-found", "nothing"),
        ("GET", "/api/v1/workloads/nothing/module", 404, "not-found", "nothing"),
        ("GET", "/api/v1/nonsense", 404, "not-found", "/api/v1/nonsense"),
        ("POST", "/api/v1/nonsense", 404, "not-found", ""),
        # Not corrected by a redirect, which would lead to whatever host the request names.
        ("GET", "/api/v1/jobs/", 404, "not-found", ""),
        ("GET", "/api/v2/jobs", 404, "not-found", "/api/v2/jobs"),
        ("PUT", "/api/v1/jobs", 405, "method-not-allowed", "does not take PUT"),
        ("DELETE", "/api/v1/jobs/nothing", 405, "method-not-allowed", "does not take DELETE"),
        ("POST", "/healthz", 405, "method-not-allowed", ""),
        ("GET", "/api/v1/records?sort=colour", 422, "invalid-request", "sort"),
        ("GET", "/api/v1/records?target=quantum", 422, "invalid-target", "quantum"),
        ("GET", "/api/v1/bests?target=quantum", 422, "invalid-target", "quantum"),
    ],
)
def test_a_wrong_address_is_named(api: Api, method: str, path: str, status: int, kind: str, token: str) -> None:
    answer = api.http.request(method, path, headers=api.headers, follow_redirects=False)
    _problem(answer, status, kind, token)
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize("path", ["/jobs", "/records", "/bests", "/workloads"])
def test_a_wrong_page_is_named(api: Api, path: str) -> None:
    for query in ("page_token=x", "page_token=", "page_size=0", "page_size=-1", "page_size=501", "page_size=x"):
        answer = api.http.get(f"/api/v1{path}?{query}", headers=api.headers)
        _problem(answer, 422, "invalid-page" if "token" in query else "invalid-request", "page_")


def test_a_page_token_of_another_list_is_refused(api: Api, job: dict[str, Any]) -> None:
    token = api.get(f"/jobs/{job['id']}/trials", page_size=1)["next_page_token"]
    answer = api.http.get(f"/api/v1/workloads?page_token={token}", headers=api.headers)
    _problem(answer, 422, "invalid-page", "page_token")


@pytest.mark.parametrize("value", ["x", "-1", str(2**70)])
def test_an_event_that_cannot_be_resumed_from_is_refused(api: Api, job: dict[str, Any], value: str) -> None:
    answer = api.http.get(f"/api/v1/jobs/{job['id']}/events", headers=api.headers | {"Last-Event-ID": value})
    _problem(answer, 422, "invalid-request", "last-event-id")
