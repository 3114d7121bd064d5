"""Admins name addresses that are told of events, and see what was sent to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.service.conftest import Api
from tests.support.programs import product

URL = "https://example.org/hook?key=1"


@pytest.fixture(autouse=True)
def _forgotten(api: Api) -> Iterator[None]:
    """No later test's jobs are told to the webhooks of these."""
    yield
    for webhook in api.get("/webhooks")["items"]:
        api.http.delete(f"/api/v1/webhooks/{webhook['id']}", headers=api.headers)


def complaint(api: Api, body: Any) -> str:
    answer = api.http.post("/api/v1/webhooks", headers=api.headers, json=body)
    assert answer.status_code == 422, answer.text
    return str(answer.json()["detail"])


def test_a_webhooks_secret_is_shown_once(api: Api) -> None:
    made = api.post("/webhooks", {"url": URL}, status=201)
    webhook = made["webhook"]
    assert webhook["events"] == ["job.finished", "best.regressed", "worker.quarantined", "worker.lost"]
    assert (webhook["url"], webhook["user"]) == (URL, "owner")
    assert made["secret"].startswith("whsec_")
    listed = api.get("/webhooks")
    assert webhook in listed["items"]
    assert made["secret"] not in json.dumps(listed)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "http:// or https://"),
        ("example.org/hook", "http:// or https://"),
        ("ftp://example.org/", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("https://", "no host"),
        ("https:///hook", "no host"),
        ("http://:80/", "no host"),
        ("https://ada:secret@example.org/", "password"),
        ("https://ada@example.org/", "password"),
        ("https://example.org/#part", "fragment"),
        ("https://example.org:port/", "not a URL"),
        ("http://[::1/", "not a URL"),
        ("https://example.org/a b", "printable ASCII"),
        ("https://example.org/\n", "printable ASCII"),
        ("https://b\u00fccher.example/", "printable ASCII"),
        (f"https://example.org/{'a' * 2000}", "2000 characters"),
    ],
)
def test_an_address_is_of_http_and_nothing_else(api: Api, url: str, reason: str) -> None:
    detail = complaint(api, {"url": url})
    assert detail.startswith("url: ")
    assert reason in detail


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://[::1]:9/x", f"https://a.b/{'a' * 1988}"])
def test_addresses_in_ones_own_network_are_taken(api: Api, url: str) -> None:
    assert api.post("/webhooks", {"url": url}, status=201)["webhook"]["url"] == url


def test_events_are_of_a_closed_set(api: Api) -> None:
    assert "job.finished" in complaint(api, {"url": URL, "events": ["job.started"]})
    assert "events" in complaint(api, {"url": URL, "events": []})
    one = api.post("/webhooks", {"url": URL, "events": ["best.regressed", "best.regressed"]}, status=201)
    assert one["webhook"]["events"] == ["best.regressed"]


def test_the_end_of_a_job_and_a_test_are_queued(api: Api) -> None:
    webhook_id = api.post("/webhooks", {"url": URL}, status=201)["webhook"]["id"]
    job = api.submit(product(8))
    api.post(f"/jobs/{job['id']}/cancel")
    test = api.post(f"/webhooks/{webhook_id}/test", status=202)
    assert (test["type"], test["attempts"], test["delivered_at"]) == ("test", 0, None)
    first = api.get(f"/webhooks/{webhook_id}/deliveries", page_size=1)
    assert first["items"] == [test]
    rest = api.get(f"/webhooks/{webhook_id}/deliveries", page_token=first["next_page_token"])
    assert [each["type"] for each in rest["items"]] == ["job.finished"]
    due = {each.id: json.loads(each.body) for each in api.database.webhooks.claim_due(100, 60)}
    assert due[rest["items"][0]["id"]]["data"] == {
        "job_id": job["id"],
        "name": job["name"],
        "state": "cancelled",
        "error": None,
        "owner": "owner",
    }
    assert due[test["id"]]["data"] == {}


def test_a_deleted_webhook_is_gone_with_its_deliveries(api: Api) -> None:
    webhook_id = api.post("/webhooks", {"url": URL}, status=201)["webhook"]["id"]
    api.post(f"/webhooks/{webhook_id}/test", status=202)
    path = f"/api/v1/webhooks/{webhook_id}"
    assert api.http.delete(path, headers=api.headers).status_code == 204
    assert webhook_id not in [each["id"] for each in api.get("/webhooks")["items"]]
    for method, below in (("GET", "/deliveries"), ("POST", "/test"), ("DELETE", "")):
        answer = api.http.request(method, path + below, headers=api.headers)
        assert answer.status_code == 404, answer.text
        assert webhook_id in answer.json()["detail"]


def test_making_and_deleting_are_in_the_audit_log(api: Api) -> None:
    webhook_id = api.post("/webhooks", {"url": URL}, status=201)["webhook"]["id"]
    api.http.delete(f"/api/v1/webhooks/{webhook_id}", headers=api.headers)
    newest = [(entry["action"], entry["object"]) for entry in api.get("/audit")["items"][:2]]
    assert newest == [("delete_webhook", f"/api/v1/webhooks/{webhook_id}"), ("make_webhook", "/api/v1/webhooks")]
