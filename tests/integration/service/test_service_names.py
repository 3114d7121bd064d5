"""Names reach terminals and pages: those that cannot be shown there are refused where they come in."""

from __future__ import annotations

import pytest

from tests.integration.service.conftest import Api
from tests.support.programs import product

HOSTILE = {"escape": "\x1b[2J\x1b]8;;http://evil\x07x", "bidi": "a\u202eb", "long": "x" * 201, "line": "a\nb"}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_jobs_name(api: Api, name: str) -> None:
    answer = api.submit(product(16), status=422, name=name)
    assert answer["type"] == "urn:loopwright:invalid-request"
    assert answer["detail"].startswith("name: ")
    assert answer["detail"].isprintable()


def test_a_functions_name(api: Api) -> None:
    answer = api.submit(product(16).replace("def main", f"def {'m' * 201}"), status=422)
    assert "a name has 1 to 200 characters" in answer["detail"]


def test_half_a_character_is_answered(api: Api) -> None:
    """As JSON allows it, and UTF-8 does not."""
    body = b'{"module": {"format": "tvmscript", "data": "x"}, "target": "\\ud800"}'
    answer = api.http.post("/api/v1/jobs", content=body, headers={**api.headers, "Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_path_is_not_corrected_by_a_redirect(api: Api) -> None:
    """It would lead to whatever host the request names."""
    answer = api.http.get("/api/v1/jobs/", headers=api.headers, follow_redirects=False)
    assert answer.status_code == 404
    assert "Location" not in answer.headers
