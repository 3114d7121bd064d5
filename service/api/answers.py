"""Answers to reads that are sent again, or not at all, while nothing changes in the database of what they show.

An answer has an ``ETag``. A client that has it sends it with its next request, and is answered 304 as long as the
answer is the same. The dashboard and the SDK do.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import anyio.to_thread
from fastapi import Response

from db import Database
from db.access.versions import Part, Version
from db.access.visibility import Viewer
from db.engine.changes import Topic
from db.errors import Unavailable

Endpoint = TypeVar("Endpoint", bound=Callable[..., object])
Make = Callable[[Viewer | None], Awaitable[Response]]

MOST_BYTES = 32 * 2**20
"""Of all answers that are kept. Not tuned."""
_SHARE = 8
"""An answer has this part of them at most."""
_PLACE_BYTES = 2_000
"""What is kept beside the text of an answer, estimated."""
CLOCK_SECONDS = 1.0
"""How old an answer may become that says what goes by the clock: who is alive, and how long something still takes."""
LONGEST_SECONDS = 60.0
"""How old others may become. Not tuned."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How the answers of an endpoint are kept; see `kept`."""

    seconds: float
    topics: frozenset[Topic]
    of: str | None

    def part(self, parameters: Mapping[str, str]) -> Part | None:
        """Return what the answer to a request with these parameters shows; None: it may be anything."""
        if not self.topics:
            return None
        return Part(self.topics, **{self.of: parameters.get(self.of)} if self.of else {})


_KEPT: dict[Callable[..., object], Keeping] = {}


def kept(
    seconds: float = LONGEST_SECONDS, *topics: Topic, of: Literal["job_id", "workload_hash"] | None = None
) -> Callable[[Endpoint], Endpoint]:
    """Declare that the answer of an endpoint depends on nothing but the database, the URL, and the caller's viewer.

    What it says that depends on the time may be so many ``seconds`` old. Commits that concern none of its ``topics``
    do not change it; without any, each commit may. The trials that it shows are those ``of`` the job or the workload
    that a parameter names.
    """

    def declare(endpoint: Endpoint) -> Endpoint:
        _KEPT[endpoint] = Keeping(seconds, frozenset(topics), of)
        return endpoint

    return declare


def keeping(endpoint: Callable[..., object]) -> Keeping | None:
    """Return how the answers of an endpoint are kept; None if they are not."""
    return _KEPT.get(endpoint)


@dataclass(frozen=True, slots=True)
class Read:
    """A request for ``url``, which has the query, by a caller who has answers with the ``tags`` already.

    The answer shows a ``part`` of what is stored.
    """

    url: str
    viewer: Viewer | None
    tags: str | None
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """Has everything up to ``version``, and up to ``since`` (monotonic seconds), when it began to be made.

    ``body`` is None if it is sent while it is made.
    """

    version: str
    since: float
    tag: str
    body: bytes | None
    media_type: str | None


@dataclass(eq=False, slots=True)
class _Place:
    """Where an answer is kept. Requests take turns to look at it."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    answer: _Answer | None = None

    @property
    def size(self) -> int:
        return _PLACE_BYTES + len((self.answer and self.answer.body) or b"")


class Answers:
    """The answers of this process, by URL and by what their callers see. Everything here runs on the event loop.

    A request gets an answer that has everything up to its arrival. Requests for the same answer at the same time wait
    for each other, so that it is made once. The least recently used go first when there are too many bytes.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._name = secrets.token_hex(8)
        """Of this process: versions of a part are the same again in another one, and after a backup was restored."""
        self._places: OrderedDict[tuple[str, Viewer | None], _Place] = OrderedDict()
        self._used = 0

    async def give(self, database: Database, read: Read, seconds: float, make: Make) -> Response:
        """Return the answer to a read, made before or by ``make``, for the viewer that it is called with.

        If that does not succeed, what it returns or raises is passed on, and not kept.
        """
        came = time.monotonic()
        try:
            version = await _version(database, read.part)
        except Unavailable:
            return await make(read.viewer)  # which waits for the database, or says what is wrong with it
        # Users who see the same share answers. Each is made for the viewer that it is kept for, whoever came first.
        viewer = version.sight_of(read.viewer)
        place = self._place(read.url, viewer)
        async with place.turn:
            answer = place.answer
            if answer is not None and time.monotonic() - answer.since <= seconds:
                if answer.body is not None and (answer.version == version.token or answer.since >= came):
                    return _sent(answer, read, Response(answer.body, media_type=answer.media_type))
                if answer.version == version.token and _has(read, answer.tag):
                    return _sent(answer, read, Response())
            since = time.monotonic()
            made = await make(viewer)
            if made.status_code != 200:
                return made
            body = getattr(made, "body", None)
            facts = f"{self._name} {version.token} {viewer} {read.url}".encode()
            tag = _digest(body if isinstance(body, bytes) else facts)
            answer = _Answer(version.token, since, tag, body, made.media_type)
            self._keep(read.url, viewer, place, answer)
            return _sent(answer, read, made)

    def _place(self, url: str, viewer: Viewer | None) -> _Place:
        place = self._places.get((url, viewer))
        if place is None:
            place = self._places[url, viewer] = _Place()
            self._used += place.size
            self._forget()
        self._places.move_to_end((url, viewer))
        return place

    def _keep(self, url: str, viewer: Viewer | None, place: _Place, answer: _Answer) -> None:
        if self._places.get((url, viewer)) is not place or len(answer.body or b"") > self._most_bytes // _SHARE:
            return
        self._used -= place.size
        place.answer = answer
        self._used += place.size
        self._forget()

    def _forget(self) -> None:
        while self._used > self._most_bytes:
            _, place = self._places.popitem(last=False)
            self._used -= place.size


async def _version(database: Database, part: Part | None) -> Version:
    # A file is asked on the event loop: it takes less time than to wake a thread.
    return await anyio.to_thread.run_sync(database.version, part) if database.is_server else database.version(part)


def _digest(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=16).hexdigest()}"'


def _has(read: Read, tag: str) -> bool:
    """Return whether the caller has the answer. A proxy that packs answers makes their tags weak."""
    tags = [each.strip().removeprefix("W/") for each in (read.tags or "").split(",")]
    return tag in tags or "*" in tags


def _sent(answer: _Answer, read: Read, response: Response) -> Response:
    """Return the response with the tag, or one that says that the caller has it."""
    if _has(read, answer.tag):
        response = Response(status_code=304)
    response.headers["ETag"] = answer.tag
    return response
