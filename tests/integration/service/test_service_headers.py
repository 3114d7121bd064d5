"""What browsers are told with every answer, and for which hosts there is one."""

from __future__ import annotations

import re

import pytest

from service.settings import Settings
from tests.integration.service.conftest import Api

PATHS = [
    "/",
    "/jobs",
    "/docs/",
    "/docs/settings.html",
    "/healthz",
    "/favicon.svg",
    "/api/v1/jobs",
    "/api/v1/nothing",
    "/%00",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(api: Api, path: str) -> None:
    for headers in (api.headers, {}):
        answer = api.http.get(path, headers=headers)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "camera=()" in answer.headers["Permissions-Policy"]
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        if path.startswith("/api/"):
            assert answer.headers["Cache-Control"] == "no-store"


def test_the_page_has_the_nonce_of_its_answer_and_each_answer_another(api: Api) -> None:
    nonces = set()
    for _ in range(2):
        answer = api.http.get("/")
        (allowed,) = re.findall(r"'nonce-([^']+)'", answer.headers["Content-Security-Policy"])
        assert f'content="{allowed}"' in answer.text
        assert "__NONCE__" not in answer.text
        nonces.add(allowed)
    assert len(nonces) == 2


def test_the_page_by_its_file_name_is_the_same(api: Api) -> None:
    assert "__NONCE__" not in api.http.get("/index.html").text


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "service.evil.example", "[", "", "service:x@evil"]
)
def test_there_is_no_answer_for_another_host(api: Api, host: str) -> None:
    for path in PATHS:
        answer = api.http.get(path, headers={**api.headers, "Host": host})
        assert answer.status_code == 421
        assert answer.json()["type"] == "urn:loopwright:unknown-host"


@pytest.mark.parametrize("host", ["service", "service:8080", "SERVICE"])
def test_the_port_and_the_case_do_not_matter(api: Api, host: str) -> None:
    assert api.http.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "allowed", "hosts"),
    [
        ("127.0.0.1", None, {"127.0.0.1", "::1", "localhost"}),
        ("::1", None, {"127.0.0.1", "::1", "localhost"}),
        ("0.0.0.0", None, None),
        ("0.0.0.0", "tune.example, [::1],Tune2.example", {"tune.example", "::1", "tune2.example"}),
    ],
)
def test_which_hosts_are_known(host: str, allowed: str | None, hosts: set[str] | None) -> None:
    assert Settings(host=host, allowed_hosts=allowed).hosts == hosts
