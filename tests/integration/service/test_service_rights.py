"""Every operation of the OpenAPI document, asked by everybody: who may is told here, and nowhere else in the tests."""

from __future__ import annotations

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient

from service.identity.rights import declare, needs
from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up
from tests.support.openapi_document import openapi_document

READ, SUBMIT, ADMIN = 0, 1, 2
NEEDS = {
    "GET": READ,
    # Other than reading what everybody may read:
    "GET /tokens": SUBMIT,
    "GET /use": SUBMIT,
    "GET /users": ADMIN,
    "GET /users/{name}/use": ADMIN,
    "GET /audit": ADMIN,
    "GET /webhooks": ADMIN,
    "GET /webhooks/{webhook_id}/deliveries": ADMIN,
    "POST /session": READ,
    "DELETE /session": READ,
    "POST /workloads/lookup": READ,
    "POST /workloads/lookup/records": READ,
    "POST /login-codes": SUBMIT,
    "POST /tokens": SUBMIT,
    "DELETE /tokens/{token_id}": SUBMIT,
    "POST /guest-links": SUBMIT,
    "POST /jobs": SUBMIT,
    "POST /jobs/preview": SUBMIT,
    "PATCH /jobs/{job_id}": SUBMIT,
    "POST /jobs/{job_id}/cancel": SUBMIT,
    "POST /jobs/{job_id}/resubmit": SUBMIT,
    "PUT /jobs/{job_id}/comparison": SUBMIT,
    "POST /rechecks": SUBMIT,
    "POST /records/{record_id}/ablation": SUBMIT,
    "POST /records/import": SUBMIT,
    "POST /users": ADMIN,
    "PATCH /users/{name}": ADMIN,
    "POST /workers/{worker_id}/readmit": ADMIN,
    "POST /workers/{worker_id}/drain": ADMIN,
    "POST /workers/{worker_id}/undrain": ADMIN,
    "POST /webhooks": ADMIN,
    "DELETE /webhooks/{webhook_id}": ADMIN,
    "POST /webhooks/{webhook_id}/test": ADMIN,
}
PREFIX = "/api/v1"


def operations() -> list[str]:
    paths = openapi_document()["paths"]
    below = {path.removeprefix(PREFIX): methods for path, methods in paths.items() if path.startswith(PREFIX)}
    return [f"{method.upper()} {path}" for path, methods in below.items() for method in methods]


@pytest.fixture(scope="module")
def visitors(api: Api) -> dict[str, tuple[int, Api]]:
    """By name: the most that a visitor may do, and a client."""
    link = api.post("/guest-links", {}, status=201)
    return {
        "guest": (READ, api.with_token(link["token"])),
        "reader": (READ, sign_up(api, "may-read", "read")),
        "submitter": (SUBMIT, sign_up(api, "may-submit")),
        "admin": (ADMIN, sign_up(api, "may-administer", "admin")),
    }


@pytest.mark.parametrize("operation", operations())
def test_who_may_do_what(api: Api, visitors: dict[str, tuple[int, Api]], operation: str) -> None:
    method, _, path = operation.partition(" ")
    needed = NEEDS[operation] if operation in NEEDS else NEEDS[method]
    for part in ("job_id", "token_id", "name", "record_id", "workload_hash", "worker_id", "webhook_id"):
        path = path.replace(f"{{{part}}}", "nosuch")
    assert "{" not in path
    stranger = TestClient(api.http.app, base_url="http://service")
    assert stranger.request(method, PREFIX + path).status_code == 401
    for name, (may, client) in visitors.items():
        # Signing in ends nothing; what is asked for is not there or not complete, so that nothing is changed.
        answer = client.http.request(method, PREFIX + path, headers=client.headers)
        client.http.cookies.clear()
        assert answer.status_code < 500, (name, answer.text)
        assert (answer.status_code == 403) == (may < needed), (name, answer.text)
        assert answer.status_code != 401


def test_no_rule_is_left_over() -> None:
    assert set(NEEDS) - {"GET"} <= set(operations())


def test_an_endpoint_that_changes_things_says_which_right_it_needs() -> None:
    router = APIRouter()

    @router.post("/undeclared")
    def undeclared() -> None: ...

    with pytest.raises(TypeError, match="undeclared"):
        declare(router)
    needs("submit")(undeclared)
    declare(router)
