"""Follows jobs by many event streams until its input ends, and prints how late events came.

    python -m benchmarks.load.followers PLAN.json < PIPE

Prints ``ready`` when all streams have begun, and at the end one line of JSON, `Found`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from datetime import datetime

import httpx
import uvloop

from benchmarks.load import parts

_SILENCE_SECONDS = 60.0
"""The service sends a comment every 15 s."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Stream number i follows job i with the token i, both counted around."""

    url: str
    tokens: list[str]
    jobs: list[str]
    streams: int


@dataclass(slots=True)
class Found:
    """``delays``: milliseconds from the writing of an event to its receipt, of events written after all had begun.

    ``missed``: events that one stream of a job received and another, which went on, did not. ``cpu_seconds`` are those
    of this process since all had begun.
    """

    delays: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    received: int = 0
    missed: int = 0
    cpu_seconds: float = 0.0


class Follower:
    def __init__(self, http: httpx.AsyncClient, job: str, token: str, found: Found) -> None:
        self._http = http
        self._token = token
        self._found = found
        self.job = job
        self.ids: list[int] = []
        self.begun = asyncio.Event()

    async def follow(self) -> None:
        """Read events until the task is cancelled; a stream that ends by itself is an error: the jobs run on."""
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with self._http.stream("GET", f"/api/v1/jobs/{self.job}/events", headers=headers) as answer:
                if not answer.is_success:
                    text = (await answer.aread()).decode()
                    self._found.errors.append(f"{answer.status_code} {text[:200]}")
                    return
                async for line in answer.aiter_lines():
                    self._line(line)
            self._found.errors.append("the stream ended")
        except httpx.HTTPError as failure:
            self._found.errors.append(f"{type(failure).__name__} {failure}")
        finally:
            self.begun.set()

    def _line(self, line: str) -> None:
        name, _, value = line.partition(": ")
        if name == "id":
            self.ids.append(int(value))
            self.begun.set()
        elif name == "data":
            delay = time.time() - datetime.fromisoformat(json.loads(value)["at"]).timestamp()
            self._found.delays.append(round(delay * 1e3, 1))


async def follow(plan: Plan) -> Found:
    found = Found()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=plan.url, limits=limits, timeout=_SILENCE_SECONDS, trust_env=False) as http:
        pairs = itertools.islice(zip(itertools.cycle(plan.jobs), itertools.cycle(plan.tokens)), plan.streams)
        followers = [Follower(http, job, token, found) for job, token in pairs]
        tasks = [asyncio.create_task(follower.follow()) for follower in followers]
        await asyncio.gather(*(follower.begun.wait() for follower in followers))
        found.delays.clear()  # those of events from before
        begun = time.process_time()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    found.cpu_seconds = time.process_time() - begun
    found.received = sum(len(follower.ids) for follower in followers)
    found.missed = _missed(followers)
    return found


def _missed(followers: list[Follower]) -> int:
    by_job: dict[str, set[int]] = defaultdict(set)
    for follower in followers:
        by_job[follower.job].update(follower.ids)
    return sum(
        sum(id <= follower.ids[-1] for id in by_job[follower.job]) - len(follower.ids)
        for follower in followers
        if follower.ids
    )


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(follow(parts.plan(Plan))))))
