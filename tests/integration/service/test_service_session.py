"""Browsers sign in by a code or a token, get a cookie, and no page of elsewhere can use it."""

from __future__ import annotations

from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up

OWN = {"Origin": "http://service", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def browser(api: Api) -> Iterator[TestClient]:
    """A client without a token, with cookies of its own."""
    browser = TestClient(api.http.app, base_url="http://service")
    yield browser
    browser.close()


def sign_in(api: Api, browser: TestClient) -> httpx2.Response:
    code = api.post("/login-codes", status=201)["code"]
    answer = browser.post("/api/v1/session", headers={"Authorization": f"Code {code}"})
    assert answer.status_code == 200, answer.text
    return answer


def test_a_code_signs_one_browser_in_once(api: Api, browser: TestClient) -> None:
    made = api.post("/login-codes", status=201)
    assert made["path"] == f"/#code={made['code']}"
    code = {"Authorization": f"Code {made['code']}"}
    # It is good for nothing but signing in.
    assert browser.get("/api/v1/jobs", headers=code).status_code == 401
    assert browser.post("/api/v1/tokens", headers=code, json={"name": "x"}).status_code == 401
    assert browser.get("/api/v1/me", headers={"Authorization": f"Bearer {made['code']}"}).status_code == 401
    assert browser.post("/api/v1/session", headers=code).status_code == 200
    session = browser.get("/api/v1/me", headers={"Sec-Fetch-Site": "same-origin"}).json()
    assert (session["user"], session["kind"], session["scope"]) == ("owner", "session", "admin")
    browser.cookies.clear()
    again = browser.post("/api/v1/session", headers=code)
    assert (again.status_code, again.json()["type"]) == (401, "urn:loopwright:code-ended")
    assert "set-cookie" not in again.headers


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: Api, browser: TestClient) -> None:
    (cookie,) = SimpleCookie(sign_in(api, browser).headers["set-cookie"]).values()
    assert cookie["httponly"] is True
    assert cookie["samesite"] == "strict"
    assert (cookie["path"], cookie["domain"], cookie["secure"]) == ("/", "", "")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://service:8888", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://service:8888"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://service", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_elsewhere_changes_nothing(api: Api, browser: TestClient, headers: dict[str, str]) -> None:
    sign_in(api, browser)
    answer = browser.post("/api/v1/tokens", headers=headers, json={"name": "planted"})
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:loopwright:cross-site")
    assert browser.post("/api/v1/tokens", headers=OWN, json={"name": "own"}).status_code == 201


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_page_of_elsewhere_reads_nothing(api: Api, browser: TestClient, site: str) -> None:
    sign_in(api, browser)
    assert browser.get("/api/v1/jobs", headers={"Sec-Fetch-Site": site}).status_code == 403
    # Where a browser does not say, reading is safe: no other page sees the answer.
    assert browser.get("/api/v1/jobs").status_code == 200


def test_signing_out_ends_the_session_and_not_only_the_cookie(api: Api, browser: TestClient) -> None:
    cookie = sign_in(api, browser).headers["set-cookie"].partition(";")[0]
    assert browser.delete("/api/v1/session", headers=OWN).status_code == 204
    assert browser.get("/api/v1/me").status_code == 401
    stolen = TestClient(api.http.app, base_url="http://service", headers={"Cookie": cookie})
    assert stolen.get("/api/v1/me").json()["type"] == "urn:loopwright:token-ended"


def test_a_guests_browser_is_signed_in_by_the_link(api: Api, browser: TestClient) -> None:
    link = api.post("/guest-links", {}, status=201)
    guest = {"Authorization": f"Bearer {link['token']}"}
    assert browser.post("/api/v1/session", headers=guest).status_code == 200
    assert browser.get("/api/v1/me").json()["kind"] == "guest"
    assert browser.get("/api/v1/jobs").status_code == 200
    assert browser.post("/api/v1/jobs", headers=OWN, json={}).status_code == 403
    assert browser.post("/api/v1/login-codes", headers=OWN).status_code == 403
    assert browser.get("/api/v1/use").status_code == 403
    api.http.delete(f"/api/v1/tokens/{link['id']}", headers=api.headers)
    assert browser.get("/api/v1/jobs").status_code == 401


def test_a_session_lasts_no_longer_than_the_token_that_made_it(api: Api, browser: TestClient) -> None:
    sign_up(api, "carol")
    made = api.post("/tokens", {"name": "a day", "user": "carol", "days": 1}, status=201)
    carol = api.with_token(made["secret"])
    sign_in(carol, browser)
    session = browser.get("/api/v1/me").json()
    assert session["expires_at"] <= made["token"]["expires_at"]
    # And so do tokens of such a token, and of such a session.
    assert carol.post("/tokens", {"name": "longer"}, status=201)["token"]["expires_at"] is not None
    longer = browser.post("/api/v1/tokens", headers=OWN, json={"name": "longer", "scope": "submit"}).json()
    assert longer["token"]["expires_at"] <= made["token"]["expires_at"]
    link = browser.post("/api/v1/guest-links", headers=OWN, json={"days": 365}).json()
    assert link["expires_at"] <= made["token"]["expires_at"]
    api.http.patch("/api/v1/users/carol", headers=api.headers, json={"disabled": True})
    assert browser.get("/api/v1/me").status_code == 401


def test_a_session_ends_with_the_token_behind_it(api: Api, browser: TestClient) -> None:
    sign_up(api, "dora")
    made = api.post("/tokens", {"name": "old", "user": "dora"}, status=201)
    dora = api.with_token(made["secret"])
    code = dora.post("/login-codes", status=201)["code"]
    sign_in(dora, browser)
    new = browser.post("/api/v1/tokens", headers=OWN, json={"name": "new", "scope": "submit"}).json()
    api.http.delete(f"/api/v1/tokens/{made['token']['id']}", headers=api.headers)
    assert browser.get("/api/v1/me").status_code == 401
    redeemed = browser.post("/api/v1/session", headers={**OWN, "Authorization": f"Code {code}"})
    assert redeemed.status_code == 401
    assert api.with_token(new["secret"]).get("/me")["user"] == "dora"


@pytest.mark.parametrize("cookie", ["loopwright_default=x", "loopwright_default=", "=;;;", "\x80", "a=b; " * 500])
def test_a_cookie_that_is_none_is_no_session(api: Api, cookie: Any) -> None:
    headers = {"Cookie": cookie.encode("latin-1")}
    assert api.http.get("/api/v1/me", headers=headers).status_code == 401
