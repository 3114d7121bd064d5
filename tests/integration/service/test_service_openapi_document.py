"""What the OpenAPI document says is what the API does, for requests generated from it, good and bad, of every role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.integration.service.conftest import Api, played, running, settings_in
from tests.integration.service.users import sign_up
from tests.support import played_fleet
from tests.support.openapi_document import openapi_document

SCHEMA = schemathesis.openapi.from_dict(openapi_document())
OPERATIONS = {result.ok().label: result.ok() for result in SCHEMA.get_all_operations()}
MODES = [
    pytest.param(label, mode, id=f"{label}-{mode.value}")
    for label in OPERATIONS
    for mode in GenerationMode
    # The others take nothing that could be wrong.
    if mode is GenerationMode.POSITIVE or "/api/" in label
]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
_BASE = "http://service"
_CLIENTS = ("authorization", "connection", "content-length", "cookie", "host")
"""Headers of the client's own."""
_EVENTS = "GET /api/v1/jobs/{job_id}/events"
"""Its schema is that of each event's data, for which OpenAPI 3.1 has no form that the check knows."""
_KEPT = ("DELETE /api/v1/tokens/{token_id}", "PATCH /api/v1/users/{name}")
"""Operations that get no ids of what there is: what they end or change, the tests need."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An application of its own: the requests make and change whatever they can."""
    with running(settings_in(tmp_path_factory.mktemp("api"))) as api:
        yield api


@pytest.fixture(scope="module")
def job(api: Api) -> dict[str, Any]:
    return played(api)


@pytest.fixture(scope="module")
def roles(api: Api) -> dict[str, Api]:
    link = api.post("/guest-links", {}, status=201)
    return {
        "guest": api.with_token(link["token"]),
        "submitter": sign_up(api, "submitter"),
        "admin": sign_up(api, "admin", "admin"),
    }


@pytest.fixture(scope="module")
def known(api: Api, job: dict[str, Any]) -> dict[str, str]:
    """Ids of what there is, by the names of parameters: endpoints have more to say of these than of invented ones."""
    task = job["tasks"][0]
    return {
        "job_id": job["id"],
        "workload_hash": task["workload_hash"],
        "record_id": task["record_id"],
        "device_class": job["device_class"],
        "worker_id": api.get("/workers")["items"][0]["id"],
        "name": "submitter",
        "token_id": "",
    }


@schemathesis.serializer("application/x-tar")
def _bytes(_: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def send(api: Api, case: Case[Any]) -> Any:
    arguments = case.as_transport_kwargs(base_url=_BASE)
    # The token says who asks, and the others are the client's own affair.
    headers = {name: value for name, value in arguments.pop("headers").items() if name.lower() not in _CLIENTS}
    arguments.pop("cookies", None)
    if "data" in arguments:
        arguments["content"] = arguments.pop("data")
    api.http.cookies.clear()
    return api.http.request(headers=headers | api.headers, **arguments)


@pytest.mark.parametrize(("label", "mode"), MODES)
@pytest.mark.parametrize("examples", [1, pytest.param(300, marks=pytest.mark.whole)])
def test_answers_are_as_documented(
    api: Api, roles: dict[str, Api], known: dict[str, str], label: str, mode: GenerationMode, examples: int
) -> None:
    operation: APIOperation[Any, Any, Any, Any] = OPERATIONS[label]

    @hypothesis.seed(1)
    @hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(
        case=operation.as_strategy(generation_mode=mode),
        # The first of each is what Hypothesis tries first: an admin, who asks for what there is.
        role=strategies.sampled_from(sorted(roles)),
        is_known=strategies.sampled_from([True, False]),
    )
    def check(case: Case[Any], role: str, is_known: bool) -> None:
        played_fleet.join(api.database)  # so that the worker is alive, however long the requests before took
        if is_known and label not in _KEPT:
            for place in (case.path_parameters, case.query):
                place.update({name: known[name] for name in place if name in known})
        answer = send(roles[role], case)
        left_out = [response_schema_conformance] if label == _EVENTS else []
        case.validate_response(answer, checks=CHECKS, excluded_checks=left_out)

    check()
