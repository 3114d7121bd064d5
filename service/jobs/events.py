"""A job's events as a stream: read from the database, so that any API process can serve any job."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio.to_thread
from sse_starlette import ServerSentEvent

from db import Database
from db.views import FINISHED

_POLL_SECONDS = 0.25


async def stream(database: Database, job_id: str, last_id: int) -> AsyncIterator[ServerSentEvent]:
    """Events after ``last_id`` as they come; ends after the last event of a finished job."""
    while True:
        # The state is read first: events that were written before the end are then sure to be seen.
        job = await anyio.to_thread.run_sync(database.jobs.get, job_id)
        events = await anyio.to_thread.run_sync(database.events.after, job_id, last_id)
        for event in events:
            last_id = event.id
            yield ServerSentEvent(
                id=str(event.id), event=event.type, data=json.dumps(event.data | {"at": event.created_at.isoformat()})
            )
        if events:
            continue
        if job.state in FINISHED:
            return
        await anyio.sleep(_POLL_SECONDS)
