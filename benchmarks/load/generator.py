"""Sends reads at a fixed rate, whatever becomes of those before, and prints what each took.

    python -m benchmarks.load.generator PLAN.json

A read counts from when it was to be sent: a service that stands still is charged for all that would have been asked of
it meanwhile. Prints one line of JSON, `Found`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import asdict, dataclass, field

import httpx

from benchmarks.load import parts
from benchmarks.load.mix import MIX, Kind, Known, Read

_TIMEOUT_SECONDS = 30.0
_KEPT_SECONDS = 2.0
"""Connections that nobody used for so long are closed, before the service does and a read finds them closed."""


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
    """Milliseconds by kind, what went wrong, and by how much sending itself was late, in milliseconds."""

    kinds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    late: list[float] = field(default_factory=list)


async def generate(plan: Plan) -> Found:
    """Carry out the plan; returns after the last answer."""
    draw, known, found = random.Random(plan.seed), Known(plan.jobs, plan.workloads), Found()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEPT_SECONDS)
    async with httpx.AsyncClient(
        base_url=f"{plan.url}/api/v1", limits=limits, timeout=_TIMEOUT_SECONDS, trust_env=False
    ) as http:
        started = time.perf_counter()
        pending = []
        for number in range(round(plan.rate * (plan.warm_seconds + plan.seconds))):
            due = started + number / plan.rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            (kind,) = draw.choices(MIX, [kind.weight for kind in MIX])
            token, read = draw.choice(plan.tokens), kind.make(draw, known)
            counts = number >= plan.rate * plan.warm_seconds
            pending.append(asyncio.create_task(_send(http, token, kind, read, due, found if counts else None)))
        await asyncio.gather(*pending)
    return found


async def _send(http: httpx.AsyncClient, token: str, kind: Kind, read: Read, due: float, found: Found | None) -> None:
    late, error = time.perf_counter() - due, None
    try:
        answer = await http.request(
            "GET" if read.body is None else "POST",
            read.path,
            params=read.params,
            json=read.body,
            headers={"Authorization": f"Bearer {token}"},
        )
        if not answer.is_success:
            error = f"{kind.name}: {answer.status_code} {answer.text[:200]}"
    except httpx.HTTPError as failure:
        error = f"{kind.name}: {type(failure).__name__} {failure}"
    if found is not None:
        found.kinds.setdefault(kind.name, []).append(round((time.perf_counter() - due) * 1e3, 1))
        found.late.append(round(late * 1e3, 1))
        found.errors += [error] if error else []


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(generate(parts.plan(Plan))))))
