"""Whatever is sent as a module, a trace, a target, a record or a body: the API refuses it or takes it, and goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.security.fuzz import bodies
from tests.security.fuzz.inputs import request
from tests.security.fuzz.known_cases import KNOWN
from tests.security.fuzz.seeds import Seeds, make_seeds
from tests.security.fuzz.watch import Found, Watched, files, records, watched
from tests.support.cases import first
from tests.support.openapi_document import openapi_document
from tests.support.programs import product
from tests.support.waiting import wait_for

SEED = 22
RECORDS = 10
"""Imported ones that are rendered and compiled at the end."""


@pytest.fixture(scope="module")
def seeds() -> Seeds:
    return make_seeds()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched(tmp_path_factory.mktemp("fuzz")) as api:
        yield api


def assert_unharmed(api: Watched, found: Found) -> None:
    assert found.faults == []
    assert api.process.is_running()
    assert api.api.running()
    assert api.api.http.get("/healthz").status_code == 200
    assert api.children() == api.at_rest
    log = (api.api.folder / "stderr").read_text(errors="replace")
    assert "Exception in ASGI application" not in log, log[-5000:]
    assert files(api.api.folder) - files(api.api.data_dir) == {str(api.api.folder / "stderr")}


@pytest.mark.parametrize("inputs", [300, pytest.param(2_000, marks=pytest.mark.whole)])
def test_mutated_inputs_do_no_harm(api: Watched, seeds: Seeds, inputs: int) -> None:
    found = api.send((f"seed {SEED}, number {number}", request(seeds, SEED, number)) for number in range(inputs))
    rendered = api.send(records(api.api.http, RECORDS))
    assert_unharmed(api, found)
    assert_unharmed(api, rendered)
    # Neither all refused nor all taken: the inputs come as far as TVM, and beyond it.
    assert found.statuses[422] > inputs // 4
    assert found.statuses[200] + found.statuses[202] > inputs // 20
    assert rendered.statuses[200] > 0


@pytest.fixture(scope="module")
def names(api: Watched) -> dict[str, str]:
    """A job and a user, by the parameters of paths."""
    module = {"format": "tvmscript", "data": product(8)}
    job = api.api.http.post("/api/v1/jobs", json={"module": module})
    user = api.api.http.post("/api/v1/users", json={"name": "changed"})
    assert (job.status_code, user.status_code) == (202, 201)
    return {"job_id": job.json()["id"], "name": "changed"}


def test_the_corpus_has_a_body_for_each_endpoint_that_takes_one() -> None:
    paths = openapi_document()["paths"]
    taking = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method, operation in methods.items()
        if "requestBody" in operation
    }
    assert taking == set(bodies.BODIES)


@pytest.mark.parametrize("endpoint", bodies.BODIES, ids=" ".join)
@pytest.mark.parametrize("inputs", [20, pytest.param(500, marks=pytest.mark.whole)])
def test_mutated_bodies_do_no_harm(api: Watched, names: dict[str, str], endpoint: tuple[str, str], inputs: int) -> None:
    before = api.processes()
    numbered = ((f"number {number}", bodies.request(names, endpoint, SEED, number)) for number in range(inputs))
    found = api.send(numbered, api.admins)
    assert_unharmed(api, found)
    assert api.processes() == before
    assert found.statuses[422] > inputs // 4
    # There is no best that could be raced again.
    assert len(found.statuses) > 1 or endpoint == ("POST", "/api/v1/rechecks")


@pytest.mark.parametrize("name", first(1, list(KNOWN)))
def test_known_input_does_no_harm(api: Watched, seeds: Seeds, name: str) -> None:
    assert_unharmed(api, api.send([(name, KNOWN[name](seeds))]))
    assert_unharmed(api, api.send(records(api.api.http, 1)))


def test_same_number_makes_the_same_input(seeds: Seeds) -> None:
    again = make_seeds()
    assert [request(seeds, SEED, number) for number in range(100)] == [
        request(again, SEED, number) for number in range(100)
    ]


@pytest.mark.whole
def test_every_line_of_the_log_is_an_object_with_the_id_of_its_request(api: Watched) -> None:
    assert api.api.http.get("/api/v1/jobs", headers={"X-Request-Id": "from-a-proxy"}).status_code == 200

    def logged() -> dict[str, Any] | None:
        lines = (api.api.folder / "stderr").read_text().splitlines()
        return next((fields for fields in map(json.loads, lines) if fields.get("request") == "from-a-proxy"), None)

    found = wait_for("the line of the request", logged)
    assert (found["level"], found["logger"], found["route"]) == ("INFO", "loopwright.requests", "/api/v1/jobs")
    assert (found["status"], found["user"]) == (200, "owner")
