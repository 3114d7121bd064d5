"""Holds connections whose requests never end, until its input ends; those that the service closes are opened again.

    python -m benchmarks.load.half_open HOST PORT TOKEN COUNT < PIPE

A third sends nothing, a third half a head, and a third half a body, with a valid token. Prints ``ready`` when all are
open, and at the end one line of JSON, `Found`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import asdict, dataclass

_PAUSE_SECONDS = 0.2
"""Before a connection is opened again."""


@dataclass(slots=True)
class Found:
    """How often a connection was opened, and how often that failed."""

    opened: int = 0
    failed: int = 0


def halves(host: str, token: str) -> tuple[bytes, bytes, bytes]:
    head = f"POST /api/v1/jobs/preview HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
    body = 'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"module": {"format": "tvmscript", "data": "'
    return b"", head.encode(), (head + body).encode()


async def hold(host: str, port: int, half: bytes, found: Found, begun: asyncio.Event) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError:
            found.failed += 1
        else:
            with contextlib.suppress(OSError):
                writer.write(half)
                found.opened += 1
                begun.set()
                await reader.read()
            writer.close()
        await asyncio.sleep(_PAUSE_SECONDS)


async def hold_all(host: str, port: int, token: str, count: int) -> Found:
    found, sent = Found(), halves(host, token)
    begun = [asyncio.Event() for _ in range(count)]
    tasks = [
        asyncio.create_task(hold(host, port, sent[number % len(sent)], found, event))
        for number, event in enumerate(begun)
    ]
    await asyncio.gather(*(event.wait() for event in begun))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def main() -> None:
    host, port, token, count = sys.argv[1:]
    print(json.dumps(asdict(asyncio.run(hold_all(host, int(port), token, int(count))))))


if __name__ == "__main__":
    main()
