"""Whatever stands in paths, queries and headers: never an internal error, and never who asks is mistaken."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from tests.integration.service.conftest import OWNER, Api

PROPERTY = settings(
    max_examples=50, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
HOSTS = (
    b"service",
    b"service:80",
    b"evil@service",
    b"service#evil",
    b"[::1].service",
    b"service:99999",
    b"service:-1",
    b"service:x",
    b"service:\xb2",
    b"[service",
    b"",
)
COOKIES = (b"loopwright_default=", b"loopwright_80=", b"loopwright_default=\xff", b'a="\\', b"$Version=1; =", b";;=;")
SCHEMES = (b"Bearer ", b"bearer\t", b"Code ", b"Basic ", b"", b"Bearer", OWNER.encode())
LISTS = (
    *("/jobs", "/workloads", "/records", "/bests", "/workers", "/device-classes", "/leases", "/targets", "/tokens"),
    *("/audit", "/jobs/{job_id}/trials", "/workloads/{workload_hash}/history"),
)

# What a server hands on: no line ends, no NUL.
values = st.binary(max_size=40).map(lambda raw: bytes(byte for byte in raw if byte == 9 or byte >= 32))
texts = st.text(st.characters(codec="utf-8"), max_size=40)
paths = texts | st.binary(max_size=40) | st.sampled_from(["%00", "..", "//", "\u2028", "a" * 300, "é"])


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def ask(
    api: Api,
    path: str,
    *headers: tuple[bytes, bytes],
    method: str = "GET",
    query: bytes = b"",
    body: bytes = b"",
) -> Answer:
    """Ask the application itself, as its server would: clients refuse to send most of this. ``path`` is quoted."""
    answer = Answer()
    bodies = [body]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": urllib.parse.unquote(path),
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"service")] * (not any(name == b"host" for name, _ in headers)) + list(headers),
        "client": ("127.0.0.1", 50000),
        "server": ("service", 80),
    }

    async def receive() -> dict[str, Any]:
        if not bodies:  # the client stays until it has the whole answer
            await anyio.sleep_forever()
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    assert api.http.portal is not None
    api.http.portal.call(api.http.app, scope, receive, send)
    return answer


def owner() -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {OWNER}".encode()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@seed(1)
@PROPERTY
@given(host=st.sampled_from(HOSTS) | values | values.map(lambda value: b"service:" + value))
@example(host=b"service:99999")
def test_odd_host(api: Api, method: str, host: bytes) -> None:
    """Signing in and out use its port, too."""
    answer = ask(api, "/api/v1/session", (b"host", host), owner(), method=method)
    assert answer.status in ({405} if method == "GET" else {200, 204}) | {421}
    assert answer.status == 421 or re.fullmatch(rb"service(:\d{1,5})?", host, re.IGNORECASE)


@seed(1)
@PROPERTY
@given(st.sampled_from(COOKIES) | values, values, st.sampled_from(HOSTS))
def test_odd_cookie(api: Api, before: bytes, after: bytes, host: bytes) -> None:
    answer = ask(api, "/api/v1/me", (b"host", host), (b"cookie", before + after))
    assert answer.status in (401, 421)


@seed(1)
@PROPERTY
@given(st.sampled_from([b"http://service", b"http://[", b"http://service\xe2\x84\x80", b"null"]) | values, values)
@example(b"http://[", b"same-origin")
def test_odd_origin(api: Api, origin: bytes, site: bytes) -> None:
    cookie = (b"cookie", b"loopwright_default=no token")
    answer = ask(api, "/api/v1/session", cookie, (b"origin", origin), (b"sec-fetch-site", site), method="DELETE")
    assert answer.status in (401, 403)


@seed(1)
@PROPERTY
@given(st.sampled_from(SCHEMES) | values, values)
def test_odd_token(api: Api, scheme: bytes, secret: bytes) -> None:
    answer = ask(api, "/api/v1/me", (b"authorization", scheme + secret))
    assert answer.status == 401
    assert OWNER not in answer.body.decode()


@seed(1)
@PROPERTY
@given(st.lists(paths, max_size=3), st.sampled_from(["/", "/assets/", "/api/v1/", "/api/v1/jobs/", "/api/v1/workers/"]))
def test_odd_path(api: Api, parts: list[str | bytes], prefix: str) -> None:
    answer = ask(api, prefix + "/".join(urllib.parse.quote(part, safe=".") for part in parts), owner())
    assert answer.status in ((200, 404, 405, 422) if prefix.startswith("/api") else (200, 404, 405))


@pytest.mark.parametrize("path", LISTS)
@seed(1)
@PROPERTY
@given(token=texts | st.binary(max_size=60), size=texts | st.integers())
@example(token="9" * 4_301, size=1)
def test_odd_page(api: Api, job: dict[str, Any], path: str, token: str | bytes, size: str | int) -> None:
    place = path.format(job_id=job["id"], workload_hash=job["tasks"][0]["workload_hash"])
    query = urllib.parse.urlencode({"page_token": token, "page_size": size})
    answer = ask(api, f"/api/v1{place}", owner(), query=query.encode())
    assert answer.status in (200, 422)


@seed(1)
@PROPERTY
@given(key=values, content_type=values, last_event=values)
def test_other_odd_headers(api: Api, job: dict[str, Any], key: bytes, content_type: bytes, last_event: bytes) -> None:
    odd = (b"idempotency-key", key), (b"content-type", content_type), (b"content-length", last_event)
    answer = ask(api, "/api/v1/jobs", owner(), *odd, method="POST", body=b'{"module": 7}')
    assert answer.status == 422
    followed = ask(api, f"/api/v1/jobs/{job['id']}/events", owner(), (b"last-event-id", last_event))
    assert followed.status in (200, 422)


@seed(1)
@PROPERTY
@given(st.binary(max_size=60))
@example(b"\xff\xfe{\x00}\x00")
@example(b"[" * 100_000)
@example(b'{"module": ' + b"9" * 5000 + b"}")
def test_odd_body(api: Api, body: bytes) -> None:
    for path in ("/jobs", "/workloads/lookup", "/tokens", "/records/import"):
        content_type = (b"content-type", b"application/json")
        answer = ask(api, f"/api/v1{path}", owner(), content_type, method="POST", body=body)
        assert answer.status == 422
        assert answer.headers["content-type"] == "application/problem+json"
