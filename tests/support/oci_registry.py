"""An OCI registry in a thread: the endpoints of the distribution API that a client of artefacts uses, kept in memory.

It asks for what its ``guard`` says, as registries do: nothing, a password, or a token that another path gives for one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

LOGIN = ("robot", "p4ssw0rd")
BASIC = f"Basic {base64.b64encode(':'.join(LOGIN).encode()).decode()}"
Guard = Literal["open", "basic", "bearer"]
_PATH = re.compile(r"/v2/(.+?)/(blobs/uploads|blobs|manifests)/(.*)")


class Registry:
    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[bytes, str]] = {}
        self.seen: list[tuple[str, str, str | None]] = []
        """Method, path with query, and Authorization of each request."""
        self.tokens: set[str] = set()
        self.redirects_to: str | None = None
        """Where blobs lie, if elsewhere."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                sent = self.headers.get("Authorization")
                registry.seen.append((self.command, self.path, sent))
                kind = self.headers.get("Content-Type", "")
                status, headers, answer = registry.answer(self.command, self.path, sent, kind, body)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(answer)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer)

            do_HEAD = do_GET = do_POST = do_PUT = _handle

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(
        self, method: str, path: str, sent: str | None, kind: str, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        split = urlsplit(path)
        if split.path == "/token":
            return self._token(parse_qs(split.query), sent)
        if (refused := self._refused(sent)) is not None:
            return refused
        found = _PATH.fullmatch(split.path)
        if found is None:
            return 404, {}, b""
        repository, what, name = found.groups()
        if what == "blobs/uploads":
            if method == "POST":
                return 202, {"Location": f"/v2/{repository}/blobs/uploads/{secrets.token_hex(8)}?_state=abc"}, b""
            digest = parse_qs(split.query)["digest"][0]
            if digest != f"sha256:{hashlib.sha256(body).hexdigest()}" or "_state" not in split.query:
                return 400, {}, b"DIGEST_INVALID"
            self.blobs[digest] = body
            return 201, {}, b""
        if what == "manifests":
            return self._manifest(method, name, kind, body)
        if name in self.blobs and method == "GET" and self.redirects_to is not None:
            return 307, {"Location": f"{self.redirects_to}/{name}?signature=secret"}, b""
        return (200, {}, self.blobs[name]) if name in self.blobs else (404, {}, b"")

    def _manifest(self, method: str, name: str, kind: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if method == "PUT":
            fields = json.loads(body)
            if any(each["digest"] not in self.blobs for each in (fields["config"], *fields["layers"])):
                return 400, {}, b"MANIFEST_BLOB_UNKNOWN"
            self.manifests[name] = self.manifests[f"sha256:{hashlib.sha256(body).hexdigest()}"] = body, kind
            return 201, {}, b""
        if name not in self.manifests:
            return 404, {}, b""
        text, stored = self.manifests[name]
        return 200, {"Content-Type": stored}, text

    def _refused(self, sent: str | None) -> tuple[int, dict[str, str], bytes] | None:
        if self.guard == "basic" and sent != BASIC:
            return 401, {"WWW-Authenticate": 'Basic realm="registry"'}, b""
        if self.guard == "bearer" and (sent or "").removeprefix("Bearer ") not in self.tokens:
            realm = f'realm="http://{self.host}/token",service="registry",scope="repository:a/b:pull,push"'
            return 401, {"WWW-Authenticate": f"Bearer {realm}"}, b""
        return None

    def _token(self, query: dict[str, list[str]], sent: str | None) -> tuple[int, dict[str, str], bytes]:
        if sent != BASIC or query != {"service": ["registry"], "scope": ["repository:a/b:pull,push"]}:
            return 401, {}, b""
        token = secrets.token_hex(16)
        self.tokens.add(token)
        return 200, {"Content-Type": "application/json"}, json.dumps({"token": token}).encode()


@contextlib.contextmanager
def registry(guard: Guard = "open") -> Iterator[Registry]:
    """Serve until the context ends."""
    served = Registry(guard)
    try:
        yield served
    finally:
        served.close()
