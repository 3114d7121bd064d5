"""Sends reads at a fixed rate, whatever becomes of those before, and prints what each took.

    python -m benchmarks.load.generator PLAN.json

A read counts from when it was to be sent: a service that stands still is charged for all that would have been asked of
it meanwhile. A user's reads say which answers the user has already, as the dashboard and the SDK do. Prints one line of
JSON, `Found`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import urllib.parse
from collections import OrderedDict, defaultdict
from dataclasses import asdict, dataclass, field

import uvloop

from benchmarks.load import parts
from benchmarks.load.connection import Connections
from benchmarks.load.mix import MIX, Kind, Known, Read

_TIMEOUT_SECONDS = 30.0
_KEPT_ANSWERS = 50
"""That the dashboard keeps (`service/dashboard/src/api/kept-answers.ts`); the SDK keeps 32."""
_NOT_MODIFIED = 304


@dataclass(frozen=True, slots=True)
class Plan:
    """``rate`` in reads a second; ``warm_seconds`` come before ``seconds`` and do not count."""

    url: str
    tokens: list[str]
    jobs: list[str]
    workloads: list[str]
    rate: float
    warm_seconds: float
    seconds: float
    seed: int


@dataclass(slots=True)
class Found:
    """Milliseconds by kind, what went wrong, and by how much sending itself was late, in milliseconds.

    ``unchanged``: how many answers said that the user has them. ``cpu_seconds`` are those of this process.
    """

    kinds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    unchanged: int = 0
    cpu_seconds: float = 0.0


class Users:
    """The users, by their tokens, with the tags of the answers that each has."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        assert parts.hostname is not None
        self._host = parts.netloc
        self.connections = Connections(parts.hostname, parts.port or 80)
        self._tags: defaultdict[str, OrderedDict[str, str]] = defaultdict(OrderedDict)

    def request(self, token: str, read: Read) -> tuple[str, bytes]:
        """Return the target of a user's read, and the request."""
        query = f"?{urllib.parse.urlencode(read.params)}" if read.params else ""
        target = f"/api/v1{read.path}{query}"
        lines = [f"Host: {self._host}", f"Authorization: Bearer {token}", "Accept: application/json"]
        body = b""
        if read.body is not None:
            body = json.dumps(read.body).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        elif (tag := self._tags[token].get(target)) is not None:
            lines.append(f"If-None-Match: {tag}")
        method = "GET" if read.body is None else "POST"
        return target, "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode() + body

    def keep(self, token: str, target: str, tag: str) -> None:
        """Keep the tag of a user's latest answer."""
        tags = self._tags[token]
        tags[target] = tag
        tags.move_to_end(target)
        if len(tags) > _KEPT_ANSWERS:
            tags.popitem(last=False)


async def generate(plan: Plan) -> Found:
    """Carry out the plan; returns after the last answer."""
    draw, known, found = random.Random(plan.seed), Known(plan.jobs, plan.workloads), Found()
    users = Users(plan.url)
    weights = [kind.weight for kind in MIX]
    started = time.perf_counter()
    pending: set[asyncio.Task[None]] = set()
    for number in range(round(plan.rate * (plan.warm_seconds + plan.seconds))):
        due = started + number / plan.rate
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        (kind,) = draw.choices(MIX, weights)
        token, read = draw.choice(plan.tokens), kind.make(draw, known)
        counts = number >= plan.rate * plan.warm_seconds
        task = asyncio.create_task(send(users, token, kind, read, due, found if counts else None))
        pending.add(task)
        task.add_done_callback(pending.discard)
    await asyncio.gather(*pending)
    users.connections.close()
    found.cpu_seconds = time.process_time()
    return found


async def send(users: Users, token: str, kind: Kind, read: Read, due: float, found: Found | None) -> None:
    """Send a read that was due at a time (`time.perf_counter`), and note what it took; None: it does not count."""
    late, error, unchanged = time.perf_counter() - due, None, False
    target, request = users.request(token, read)
    try:
        answer = await users.connections.ask(request, _TIMEOUT_SECONDS)
        unchanged = answer.status == _NOT_MODIFIED
        if not unchanged and not 200 <= answer.status < 300:
            error = f"{kind.name}: {answer.status} {answer.text.decode(errors='replace')}"
        elif read.body is None and answer.tag is not None:
            users.keep(token, target, answer.tag)
    except OSError as failure:  # TimeoutError, too
        error = f"{kind.name}: {type(failure).__name__} {failure}"
    if found is not None:
        found.kinds.setdefault(kind.name, []).append(round((time.perf_counter() - due) * 1e3, 1))
        found.late.append(round(late * 1e3, 1))
        found.errors += [error] if error else []
        found.unchanged += unchanged


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(generate(parts.plan(Plan))))))
