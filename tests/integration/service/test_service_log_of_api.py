"""The API in a process of its own writes JSON, and nothing but JSON, to stderr."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.api_alone import ApiAlone


def test_every_line_is_an_object_with_the_id_of_its_request(tmp_path: Path) -> None:
    alone = ApiAlone(tmp_path)
    alone.environment |= {"LOOPWRIGHT_LOG_FORMAT": "json", "LOOPWRIGHT_LOG_REQUESTS": "true"}
    with alone:
        assert alone.http.get("/api/v1/jobs", headers={"X-Request-Id": "from-a-proxy"}).status_code == 200
    lines = [json.loads(line) for line in (alone.folder / "stderr").read_text().splitlines()]
    (found,) = (line for line in lines if line.get("request") == "from-a-proxy")
    assert (found["level"], found["logger"], found["route"]) == ("INFO", "loopwright.requests", "/api/v1/jobs")
    assert (found["status"], found["user"]) == (200, "owner")
