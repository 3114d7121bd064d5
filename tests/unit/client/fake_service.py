"""A service's side of the wire on a real socket: it answers what a test tells it to, and remembers what came.

It has a key of its own, which signs the bests below; requests for it are not remembered.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.evidence import KEY, signed

KEYS = "/api/v1/keys"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """``body`` is sent as JSON unless it is bytes; ``hang_up`` closes the connection without an answer."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False


class FakeService:
    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._routes: dict[tuple[str, str], Callable[[Request], Answer]] = {}
        self.on("GET", KEYS, {"items": [KEY], "next_page_token": None})
        service = self

        class Handler(BaseHTTPRequestHandler):
            def _handle(self) -> None:
                split = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, split.path, dict(parse_qsl(split.query)), headers, body)
                if request.path != KEYS:
                    service.requests.append(request)
                answer = service.answer(request)
                if answer.hang_up:
                    return
                raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def on(self, method: str, path: str, answer: Any) -> None:
        """Answer a route with a value (JSON or bytes), an `Answer`, a list of them in turn (the last stays), or by
        what a function makes of the request."""
        if isinstance(answer, list) and any(isinstance(item, Answer) for item in answer):
            turns = list(answer)
            self._routes[method, path] = lambda _: turns.pop(0) if len(turns) > 1 else turns[0]
        elif callable(answer):
            self._routes[method, path] = answer
        else:
            self._routes[method, path] = lambda _: answer if isinstance(answer, Answer) else Answer(answer)

    def answer(self, request: Request) -> Answer:
        route = self._routes.get((request.method, request.path))
        return route(request) if route else problem(404, "Not found", f"no {request.path}")

    def seen(self, method: str, path: str) -> list[Request]:
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def problem(status: int, title: str, detail: str) -> Answer:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Answer(body, status, {"Content-Type": "application/problem+json"})


def job_json(state: str = "queued", **changes: Any) -> dict[str, Any]:
    return {
        "id": "job-1",
        "name": "mm",
        "state": state,
        "target": {"kind": "llvm"},
        "device_class": "class-1",
        "budget": {"max_trials": 64, "max_seconds": None},
        "seed": 0,
        "priority": 0,
        "owner": "owner",
        "visibility": "team",
        "group": None,
        "labels": {},
        "created_at": "2026-01-01T00:00:00Z",
        "started_at": None,
        "finished_at": None,
        "error": None,
        "notes": [],
        "progress": {"trials": 3, "failed": 1, "total": 64, "time_left_s": None},
        "model": {"baseline_us": 100.0, "best_us": 10.0, "measured_us": None, "latency_us": 10.0, "speedup": 10.0},
        "tasks": [
            {
                "workload_hash": "0" * 32,
                "name": "main",
                "weight": 1,
                "state": "succeeded" if state == "partly" else state,
                "trials": 3,
                "baseline_us": 100.0,
                "best_us": 10.0,
                "speedup": 10.0,
                "certified": state == "succeeded",
                "answered_from": "search",
                "record_id": None,
                "failures": {"COMPILE": 1},
                "error": None,
                "model_share": 1.0,
                "budget_share": 1.0,
                "library": None,
            }
        ],
        **changes,
    }


def best_json(workload_hash: str, trace: list[Any] | None, **changes: Any) -> dict[str, Any]:
    """A best with a signed certificate that says the same."""
    best: dict[str, Any] = {
        "workload_hash": workload_hash,
        "name": "main",
        "target": {"kind": "llvm"},
        "device_class": "class-1",
        "record_id": "record-1",
        "baseline_us": 100.0,
        "best_us": 100.0 if trace is None else 10.0,
        "is_baseline": trace is None,
        "trace": trace,
        "created_at": "2026-01-01T00:00:00Z",
    } | changes
    best["speedup"] = best["baseline_us"] / best["best_us"]
    certificate = {
        "id": "certificate-1",
        "created_at": best["created_at"],
        "inputs": "2 sets, uniform in [-1, 1)",
        "rtol": 1e-3,
        "atol": 1e-3,
        "max_abs_error": 1e-6,
        "max_rel_error": 1e-6,
        "rounds": 2,
        "baseline_run_secs": [best["baseline_us"] * 1e-6] * 2,
        "best_run_secs": [best["best_us"] * 1e-6] * 2,
        "baseline_us": best["baseline_us"],
        "best_us": best["best_us"],
        "speedup": best["speedup"],
        "interval": {"value": best["speedup"], "low": 0.95 * best["speedup"], "high": 1.04 * best["speedup"]},
        "grade": "clean",
        "contenders": 2,
        "rejected": [],
        "library": None,
        "sandbox": "landlock",
        "conditions": "TVM 0.27, Linux 6.1",
    }
    return signed({"certificate": certificate} | best)


def lookup(
    *bests: dict[str, Any], auto: dict[str, Any] | None = None, imported: Sequence[dict[str, Any]] = ()
) -> Callable[[Request], Answer]:
    """What answers ``POST /workloads/lookup`` from these bests; ``auto`` is what the target is resolved to."""

    def answer(request: Request) -> Answer:
        body = request.json()
        hashes = body["functions"]
        asked_class = body["device_class"]
        known: dict[str, dict[str, Any]] = {}
        for best in sorted(bests, key=lambda best: best["best_us"]):
            if best["workload_hash"] in hashes and asked_class in (None, best["device_class"]):
                known.setdefault(best["workload_hash"], best)
        return Answer(
            {
                "target": auto or {"kind": "llvm", "num-cores": 2},
                "functions": hashes,
                "hits": [{"workload_hash": hash, "best": best, "module": None} for hash, best in known.items()],
                "misses": [hash for hash in dict.fromkeys(hashes) if hash not in known],
                "imported": imported if body["imported"] else [],
            }
        )

    return answer


def records(look_up: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """What answers ``POST /workloads/lookup/records`` as a `lookup` does, by the ids of records alone."""

    def answer(request: Request) -> Answer:
        full = look_up(replace(request, body=json.dumps(request.json() | {"device_class": None}).encode())).body
        known = {each["workload_hash"]: each["record_id"] for each in full["imported"]}
        known |= {hit["workload_hash"]: hit["best"]["record_id"] for hit in full["hits"]}
        return Answer({"target": full["target"], "records": known})

    return answer


def page(*items: Any, token: str | None = None) -> dict[str, Any]:
    return {"items": list(items), "next_page_token": token}
