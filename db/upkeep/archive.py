"""Trials that are pruned, as lines of JSON in a folder: for analysis, without the service.

``month=2030-01/JOB-TRIAL.jsonl.zst`` has trials of one job, named after the first of them, by the month in which the
job ended. DuckDB reads all of them as one table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import zstandard
from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import Job, Trial

_LEFT_OUT = {"lease_token", "features"}
"""A finished trial has no lease, and features are computed from the trace."""
_COLUMNS = tuple(column.key for column in Trial.__mapper__.column_attrs if column.key not in _LEFT_OUT)


class Archive:
    """Adds trials to ``folder``, which is made if it is missing. Two runs that add the same trials make one file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, session: Session, job: Job, trial_ids: Collection[str]) -> None:
        """Write trials of a finished job to the disk, to be deleted in the same transaction."""
        assert job.finished_at is not None, "trials of a job at work stay"
        wanted = select(*(getattr(Trial, name) for name in _COLUMNS)).where(Trial.id.in_(trial_ids))
        rows = session.execute(wanted.order_by(Trial.task_id, Trial.number)).all()
        lines = "".join(_line(job.id, row) for row in rows)
        folder = self._folder / f"month={job.finished_at:%Y-%m}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{job.id}-{rows[0].id}.jsonl.zst"
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(zstandard.ZstdCompressor(write_checksum=True).compress(lines.encode()))
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)


def _line(job_id: str, row: Sequence[Any]) -> str:
    trial = {"job_id": job_id, **dict(zip(_COLUMNS, row, strict=True))}
    return json.dumps(trial, default=_text, separators=(",", ":")) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value)} is no column of a trial")
