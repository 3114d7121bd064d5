"""The formats of a log line: text for people, and JSON for programs."""

from __future__ import annotations

import enum
import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from service.logs.ids import known

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
"""Attributes that records have of themselves; any other one was given as ``extra``."""
_LONGEST = 16_000
"""Characters of a message or a traceback. A log file takes a line of 64 KiB whole."""


class LogFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"


class TextLine(logging.Formatter):
    """``2030-01-31 12:00:00,123 WARNING loopwright.controller job … was taken over [job=…]``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        ids = " ".join(f"{name}={value}" for name, value in _facts(record).items() if name in _IDS)
        return f"{line} [{ids}]" if ids else line


_IDS = ("request", "job", "trial", "worker")
"""Of what is known of a line, that which its text may lack."""


class JsonLine(logging.Formatter):
    """A JSON object in one line: ``time``, ``level``, ``logger``, ``message``, the current ids, and ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage()[:_LONGEST],
            **_facts(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # Its end says what was raised.
            line["exception"] = self.formatException(record.exc_info)[-_LONGEST:]
        return json.dumps(line, ensure_ascii=False, default=str)


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """Return the ids that are known, and what was given as ``extra``."""
    # Ray marks records with attributes of its own, which begin with an underscore.
    extra = {name: value for name, value in vars(record).items() if name not in _OWN and not name.startswith("_")}
    return {**known(), **extra}


def set_up(log_format: LogFormat) -> None:
    """Write the log of this process to stderr: the messages of Loopwright, and warnings of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLine() if log_format is LogFormat.JSON else TextLine())
    # At INFO, httpx would log the URL of each webhook, and who knows that may be able to write to it.
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("loopwright").setLevel(logging.INFO)
    if log_format is LogFormat.JSON:
        sys.excepthook = _log_uncaught


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Write what ends the process as a line, too."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    logging.getLogger("loopwright").critical("%s: %s", kind.__name__, error, exc_info=(kind, error, traceback))
