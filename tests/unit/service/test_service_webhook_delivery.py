"""Deliveries of webhooks reach a real server on this machine, or are stored as failed with the reason."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from db import Database, migrate
from db.access.webhooks import DeliveryView
from db.errors import DatabaseAway
from db.states import WebhookEvent
from service.controller.controller import Controller
from service.settings import Settings
from service.webhooks import deliver
from service.webhooks.deliver import Deliverer
from service.webhooks.sign import new_secret
from tests.support.idle_loops import IdleLoops, OneNode
from tests.support.service import free_port
from tests.support.waiting import wait_for


@dataclass
class Receiver:
    """A server that answers with ``statuses`` in turn, the last one from then on, and keeps what it was sent."""

    statuses: list[int] = field(default_factory=lambda: [200])
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[BaseHTTPRequestHandler], None] | None = None
    """What to do in place of answering with a status."""
    url: str = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append((self.path, {name.lower(): self.headers[name] for name in self.headers}, body))
            if receiver.answer is not None:
                receiver.answer(self)
                return
            statuses = receiver.statuses
            self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook?key=of-the-url"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield receiver
    server.shutdown()
    server.server_close()


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(deliver, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr("db.access.webhooks._FIRST_WAIT_SECONDS", 0.1)
    url = f"sqlite:///{tmp_path}/loopwright.db"
    migrate.upgrade(url)
    database = Database(url)
    yield database
    database.close()


@contextmanager
def running(database: Database) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=Deliverer(database).run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def queued(database: Database, url: str, secret: str = "") -> str:
    """The id of a webhook with one delivery."""
    made = database.webhooks.create(url, secret or new_secret(), events=list(WebhookEvent), user_name="owner")
    database.webhooks.test(made.id)
    return made.id


def delivery(database: Database, webhook_id: str) -> DeliveryView:
    (view,) = database.webhooks.deliveries(webhook_id).items
    return view


def outcome(database: Database, webhook_id: str) -> DeliveryView:
    """The delivery, once an attempt has ended."""

    def look() -> DeliveryView | None:
        view = delivery(database, webhook_id)
        return view if view.delivered_at is not None or view.last_error is not None else None

    return wait_for("an attempt", look)


def arrived(database: Database, webhook_id: str) -> DeliveryView:
    def look() -> DeliveryView | None:
        view = delivery(database, webhook_id)
        return view if view.delivered_at is not None else None

    return wait_for("the delivery", look)


def test_a_delivery_is_signed_and_marked(database: Database, receiver: Receiver) -> None:
    secret = new_secret()
    webhook_id = queued(database, receiver.url, secret)
    with running(database):
        view = arrived(database, webhook_id)
    assert (view.attempts, view.next_at, view.last_error) == (1, None, None)
    ((path, headers, body),) = receiver.requests
    assert path == "/hook?key=of-the-url"
    assert json.loads(body)["type"] == "test"
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == view.id
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 300
    # As a receiver does it.
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_what_failed_is_sent_again_under_the_same_id(database: Database, receiver: Receiver) -> None:
    receiver.statuses = [500, 204]
    webhook_id = queued(database, receiver.url)
    with running(database):
        view = arrived(database, webhook_id)
    assert (view.attempts, view.last_error) == (2, "status 500")
    first, second = receiver.requests
    assert first[1]["webhook-id"] == second[1]["webhook-id"]
    assert first[2] == second[2]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(database: Database, receiver: Receiver, status: int) -> None:
    receiver.statuses = [status, 200]
    webhook_id = queued(database, receiver.url)
    with running(database):
        view = arrived(database, webhook_id)
    assert view.last_error == f"status {status}"
    assert [path for path, _, _ in receiver.requests] == ["/hook?key=of-the-url"] * 2


def test_a_receiver_that_is_away_is_told_later(database: Database) -> None:
    webhook_id = queued(database, f"http://127.0.0.1:{free_port()}/")
    with running(database):
        view = outcome(database, webhook_id)
    assert view.delivered_at is None
    assert view.next_at is not None
    assert "ConnectError" in (view.last_error or "")


def accept(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Send a header now and then, so that no single read takes long."""
    with handler.connection, handler.connection.makefile("wb", 0) as stream:
        stream.write(b"HTTP/1.1 200 OK\r\n")
        try:
            for number in range(600):
                stream.write(f"x-{number}: y\r\n".encode())
                time.sleep(0.1)
        except OSError:
            pass


def test_a_slow_receiver_fails_alone(database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "_SEND_SECONDS", 1.0)
    receiver.answer = lambda handler: drip(handler) if handler.path == "/slow" else accept(handler)
    slow = queued(database, receiver.url.partition("/hook")[0] + "/slow")
    fast = queued(database, receiver.url)
    with running(database):
        assert outcome(database, slow).last_error == "no answer within 1 s"
        assert arrived(database, fast).attempts == 1


def test_the_body_of_an_answer_is_not_read(database: Database, receiver: Receiver) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        accept(handler)
        try:
            while True:
                handler.wfile.write(bytes(65536))
        except OSError:
            pass

    receiver.answer = endless
    webhook_id = queued(database, receiver.url)
    with running(database):
        assert arrived(database, webhook_id).attempts == 1


def test_nothing_secret_is_logged(database: Database, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "loopwright")
    receiver.statuses = [500, 200]
    secret = new_secret()
    webhook_id = queued(database, receiver.url, secret)
    with running(database):
        arrived(database, webhook_id)
    assert "status 500" in caplog.text
    assert webhook_id in caplog.text
    own = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("loopwright"))
    assert "of-the-url" not in own
    assert secret.removeprefix("whsec_") not in caplog.text


def test_a_database_that_was_away_does_not_end_deliveries(
    database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    claim, calls = database.webhooks.claim_due, []

    def claim_due(limit: int, hold_seconds: float) -> Any:
        calls.append(limit)
        if len(calls) <= 2:
            raise DatabaseAway("the server closed the connection")
        return claim(limit, hold_seconds)

    monkeypatch.setattr(database.webhooks, "claim_due", claim_due)
    webhook_id = queued(database, receiver.url)
    with running(database):
        assert arrived(database, webhook_id).attempts == 1
    assert caplog.text.count("the server closed the connection") == 1


def test_a_controller_sends_and_ends_when_it_is_told_to(database: Database, receiver: Receiver, tmp_path: Path) -> None:
    webhook_id = queued(database, receiver.url)
    before = set(threading.enumerate())  # a service of other tests may have a controller here
    stop = threading.Event()
    controller = Controller(Settings(data_dir=tmp_path), database, OneNode(), IdleLoops())
    thread = threading.Thread(target=controller.run, args=(stop,))
    thread.start()
    try:
        assert arrived(database, webhook_id).attempts == 1
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert "webhooks" not in {each.name for each in set(threading.enumerate()) - before}
