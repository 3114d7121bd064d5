"""Streams a job's events. They come from the database, so that any API process can serve any job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sse_starlette import EventSourceResponse

from loopwright import schemas
from service.api.feeds import Feeds


class EventStream(EventSourceResponse):
    """Server-sent events; the class names their media type for the OpenAPI schema."""

    media_type = "text/event-stream"


EVENTS: dict[str, Any] = {
    "model": schemas.Event,
    "description": "Events named job, task, trial or recheck. The schema is that of each event's data.",
    "content": {EventStream.media_type: {"schema": {"type": "object"}}},
}
"""For the OpenAPI schema. FastAPI would call what is not JSON a string."""


_AT_ONCE = 50
"""Lines of some hundred bytes, which a reader that is slow may leave in memory. Not tuned."""


async def stream(feeds: Feeds, job_id: str, last_id: int) -> AsyncIterator[bytes]:
    """Yield events after ``last_id`` as they are written; end after the last event of a finished job.

    Raises FeedBroken: the stream then breaks instead of ending, so that its reader knows that there is more.
    """
    async with feeds.follow(job_id) as feed:
        while lines := await feed.after(last_id):
            for first in range(0, len(lines), _AT_ONCE):
                yield b"".join(line.sent for line in lines[first : first + _AT_ONCE])
            last_id = lines[-1].id
