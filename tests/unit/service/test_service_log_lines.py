"""Lines of the log: JSON for programs or text for people, with the ids of what they are about."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from service.logs.ids import about, known
from service.logs.lines import JsonLine, TextLine


def record(message: str = "said", *args: Any, **extra: Any) -> logging.LogRecord:
    logger = logging.Logger("loopwright.test")
    return logger.makeRecord(logger.name, logging.WARNING, "file", 1, message, args, None, extra=extra)


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = JsonLine().format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_of_json_has_time_level_logger_and_message() -> None:
    line = as_json(record("%d of %d", 1, 2))
    assert (line["level"], line["logger"], line["message"]) == ("WARNING", "loopwright.test", "1 of 2")
    assert line["time"].endswith("+00:00")
    assert line.keys() == {"time", "level", "logger", "message"}


def test_a_line_names_what_it_is_about() -> None:
    with about(job="j"), about(trial="t"):
        line = as_json(record(worker="host/cpu", status=200, _mark=1))
        text = TextLine().format(record(worker="host/cpu", status=200))
    assert "_mark" not in line
    assert (line["job"], line["trial"], line["worker"], line["status"]) == ("j", "t", "host/cpu", 200)
    assert text.endswith("WARNING loopwright.test said [job=j trial=t worker=host/cpu]")
    assert known() == {}
    assert TextLine().format(record()).endswith(" said")


def test_what_a_line_is_given_wins_over_what_is_known() -> None:
    with about(worker="one"):
        assert as_json(record(worker="two"))["worker"] == "two"


def test_a_traceback_and_line_breaks_stay_in_one_line() -> None:
    try:
        raise ValueError("bad\nthing")
    except ValueError:
        made = logging.LogRecord("a", logging.ERROR, "file", 1, "one\ntwo", (), sys.exc_info())
    line = as_json(made)
    assert line["message"] == "one\ntwo"
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("bad\nthing")


@pytest.mark.parametrize("text", ["a" * 200_000, "\u00e9" * 200_000])
def test_a_line_fits_into_one_of_a_log_file(text: str) -> None:
    assert len(JsonLine().format(record(text)).encode()) < 64 * 2**10


def test_a_process_writes_json_also_of_what_ends_it() -> None:
    program = (
        "import logging; from service.logs.lines import LogFormat, set_up; set_up(LogFormat.JSON);"
        "logging.getLogger('loopwright.x').info('begun'); logging.getLogger('httpx').info('a secret address');"
        "raise RuntimeError('over')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [
        ("INFO", "begun"),
        ("CRITICAL", "RuntimeError: over"),
    ]
    assert "Traceback" in lines[1]["exception"]
