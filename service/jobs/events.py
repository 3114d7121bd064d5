"""Streams a job's events. They are read from the database, so that any API process can serve any job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
from sse_starlette import EventSourceResponse, ServerSentEvent

from db import Database
from db.states import FINISHED
from loopwright import schemas
from service.jobs import wire

_POLL_SECONDS = 0.25


class EventStream(EventSourceResponse):
    """Server-sent events; the class names their media type for the OpenAPI schema."""

    media_type = "text/event-stream"


EVENTS: dict[str, Any] = {
    "model": schemas.Event,
    "description": "Events named job, task or trial. The schema is that of each event's data.",
    "content": {EventStream.media_type: {"schema": {"type": "object"}}},
}
"""For the OpenAPI schema. FastAPI would call what is not JSON a string."""


async def stream(database: Database, job_id: str, last_id: int) -> AsyncIterator[ServerSentEvent]:
    """Yield events after ``last_id`` as they are written; end after the last event of a finished job."""
    while True:
        # The state is read first: events that were written before the end are then sure to be seen.
        job = await anyio.to_thread.run_sync(database.jobs.get, job_id)
        events = await anyio.to_thread.run_sync(database.events.after, job_id, last_id)
        for event in events:
            last_id = event.id
            yield ServerSentEvent(id=str(event.id), event=event.type.value, data=wire.event(event).model_dump_json())
        if events:
            continue
        if job.state in FINISHED:
            return
        await anyio.sleep(_POLL_SECONDS)
