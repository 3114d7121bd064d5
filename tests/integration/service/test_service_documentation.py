"""The documentation under /docs/."""

from __future__ import annotations

import pytest

from tests.integration.service.conftest import Api


def test_the_documentation_needs_no_token(api: Api) -> None:
    answer = api.http.get("/docs/")
    assert answer.status_code == 200
    assert "<title>Loopwright" in answer.text
    assert 'href="settings.html"' in answer.text
    assert "LOOPWRIGHT_DATA_DIR" in api.http.get("/docs/settings.html").text


def test_the_address_without_its_slash_leads_to_the_documentation(api: Api) -> None:
    answer = api.http.get("/docs", follow_redirects=False)
    assert answer.is_redirect
    # Not the host that the request names.
    assert answer.headers["Location"] == "/docs/"


@pytest.mark.parametrize("path", ["nothing.html", "guides", "%2e%2e/pages.py", "..%2f..%2fpages.py", "%00", "a" * 5000])
def test_there_is_nothing_but_the_files_of_the_documentation(api: Api, path: str) -> None:
    answer = api.http.get(f"/docs/{path}")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:loopwright:not-found"


def test_only_the_documentation_may_have_style_sheets_in_its_pages(api: Api) -> None:
    assert "style-src-elem 'self' 'unsafe-inline';" in api.http.get("/docs/").headers["Content-Security-Policy"]
    assert "style-src-elem 'self' 'nonce-" in api.http.get("/jobs").headers["Content-Security-Policy"]
