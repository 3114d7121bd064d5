"""Webhooks in the SDK and on the command line."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from loopwright import Client
from loopwright.errors import NotFound
from loopwright.schemas import WebhookEvent
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import Answer, FakeService, page

WEBHOOK: dict[str, Any] = {
    "id": "w1",
    "url": "https://example.org/hook",
    "events": ["job.finished", "best.regressed"],
    "user": "ada",
    "created_at": "2030-01-01T00:00:00Z",
}
DELIVERY: dict[str, Any] = {
    "id": "d1",
    "type": "job.finished",
    "created_at": "2030-01-01T00:00:00Z",
    "attempts": 2,
    "next_at": None,
    "delivered_at": "2030-01-01T00:01:00Z",
    "last_error": None,
}
API = "/api/v1/webhooks"


def test_a_webhooks_secret_is_printed_alone(service: FakeService, run: Command) -> None:
    service.on("POST", API, {"webhook": WEBHOOK, "secret": "whsec_c2VjcmV0"})
    assert run("webhook", "add", WEBHOOK["url"]).out == "whsec_c2VjcmV0\n"
    assert service.requests[-1].json() == {"url": WEBHOOK["url"], "events": list(get_args(WebhookEvent))}
    done = run("webhook", "add", WEBHOOK["url"], "--event", "best.regressed", "--json")
    assert service.requests[-1].json()["events"] == ["best.regressed"]
    assert json.loads(done.out) == {"webhook": WEBHOOK, "secret": "whsec_c2VjcmV0"}


@pytest.mark.parametrize("words", [["ftp://example.org"], ["https://a:b@c"], ["https://a", "--event", "job.started"]])
def test_a_wrong_webhook_is_not_sent(service: FakeService, run: Command, words: list[str]) -> None:
    assert run("webhook", "add", *words).status == 2
    assert service.requests == []


def test_webhooks_are_listed_with_their_events(service: FakeService, run: Command) -> None:
    service.on("GET", API, page(WEBHOOK))
    line = run("webhook", "list").out.splitlines()[1]
    assert line.split() == ["w1", WEBHOOK["url"], "job.finished,", "best.regressed", "ada", "2030-01-01", "00:00"]
    assert json.loads(run("webhook", "list", "--json").out) == [WEBHOOK]


def test_deliveries_are_listed_with_what_came_of_them(service: FakeService, run: Command) -> None:
    waiting = DELIVERY | {
        "id": "d2",
        "delivered_at": None,
        "next_at": "2030-01-01T06:00:00Z",
        "last_error": "status 500",
    }
    given_up = waiting | {"id": "d3", "next_at": None}
    service.on("GET", f"{API}/w1/deliveries", page(DELIVERY, waiting, given_up))
    lines = run("webhook", "deliveries", "w1").out.splitlines()
    assert lines[1].split()[-3:] == ["delivered", "2030-01-01", "00:01"]
    assert lines[2].split()[-5:] == ["next", "2030-01-01", "06:00", "status", "500"]
    assert lines[3].split()[-4:] == ["given", "up", "status", "500"]
    assert len(json.loads(run("webhook", "deliveries", "w1", "--limit", "2", "--json").out)) == 2


def test_a_webhook_is_tested_and_removed(service: FakeService, run: Command) -> None:
    service.on("POST", f"{API}/w1/test", Answer(DELIVERY | {"type": "test"}, 202))
    service.on("DELETE", f"{API}/w1", Answer(b"", 204))
    assert run("webhook", "test", "w1").out.startswith("queued d1;")
    assert json.loads(run("webhook", "test", "w1", "--json").out)["type"] == "test"
    assert run("webhook", "remove", "w1").out == "removed w1\n"
    assert json.loads(run("webhook", "remove", "w1", "--json").out) == {"removed": "w1"}


def test_an_unknown_webhook_is_not_found(service: FakeService) -> None:
    with Client(service.url, "t") as client:
        for use in (client.webhooks.delete, client.webhooks.test):
            with pytest.raises(NotFound):
                use("a/b")
    assert [request.path for request in service.requests] == [f"{API}/a%2Fb", f"{API}/a%2Fb/test"]
