"""Bodies that cost more than their bytes are refused, and the service answers others whatever is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support import played_fleet
from tests.support.cases import first
from tests.support.programs import product
from tests.support.served_api import ServedApi, served

MODULE = {"format": "tvmscript", "data": "x"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApi]:
    with served(tmp_path_factory.mktemp("api")) as api:
        played_fleet.join(api.database)
        yield api


def _post(api: ServedApi, body: str | bytes, path: str = "/api/v1/jobs") -> httpx.Response:
    return api.http.post(path, content=body, headers={"Content-Type": "application/json"})


def _problem(answer: httpx.Response, kind: str) -> str:
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] == f"urn:loopwright:{kind}"
    detail: str = answer.json()["detail"]
    return detail


def _body(**fields: Any) -> str:
    return json.dumps({"module": MODULE, **fields})


def test_a_body_of_ten_million_values_is_refused(api: ServedApi) -> None:
    """Parsed on the event loop, it held everything up for 23 s."""
    body = b'{"space": [' + b"[]," * 10_000_000 + b"[]]}"
    assert "200000" in _problem(_post(api, body), "too-complex")


def test_a_body_of_many_names_is_refused(api: ServedApi) -> None:
    body = _body(**{f"field{number}": 1 for number in range(30_000)})
    assert "25000" in _problem(_post(api, body), "too-complex")


def test_a_body_that_is_nested_too_deep_is_refused(api: ServedApi) -> None:
    body = '{"space": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert "64" in _problem(_post(api, body), "too-complex")


@pytest.mark.parametrize(
    "fields",
    first(2, [{f"field{number}": 1 for number in range(20_000)}, {"n" * 1_000_000: 1}, {"shapes": [1] * 150_000}]),
    ids=["unknown fields", "a long name", "wrong shapes"],
)
def test_an_answer_is_short_however_much_is_wrong(api: ServedApi, fields: dict[str, Any]) -> None:
    assert len(_problem(_post(api, _body(**fields)), "invalid-request")) < 5_000


def test_the_largest_body_holds_nobody_up(api: ServedApi) -> None:
    """Health is answered while the body is on its way and being parsed."""
    largest = _body(space=[[1]] * 65_000, shapes={f"n{number}": "?" for number in range(20_000)})
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            sent = pool.submit(_post, api, largest)
            answered = 0
            while not sent.done():
                assert api.http.get("/healthz").status_code == 200
                answered += 1
            assert answered > 0
            _problem(sent.result(), "invalid-request")


def test_large_modules_are_taken_as_before(api: ServedApi) -> None:
    """A script of nearly a million characters, and TVM's JSON, which is full of escapes, inside of a string."""
    script = product(32) + '# "[{,\\\n' * 120_000
    previewed = _post(api, _body(module={"format": "tvmscript", "data": script}), "/api/v1/jobs/preview")
    assert previewed.status_code == 200, previewed.text
    assert len(previewed.json()["tasks"]) == 1
    nested = json.dumps({"nodes": [["\"'\\"] * 200_000]})
    _problem(_post(api, _body(module={"format": "tvm-json", "data": nested}), "/api/v1/jobs/preview"), "invalid-module")


def test_every_body_is_parsed_in_a_thread(api: ServedApi) -> None:
    """FastAPI parses on the event loop, and complains in other words."""
    paths = api.http.get("/openapi.json").json()["paths"]
    bodies = {path: methods.get("post", {}).get("requestBody", {}) for path, methods in paths.items()}
    taking = [path for path, body in bodies.items() if "application/json" in body.get("content", {})]
    assert len(taking) >= 4
    for path in taking:
        assert _problem(_post(api, "{", path.format(job_id="none")), "invalid-request").startswith("body: Invalid JSON")
