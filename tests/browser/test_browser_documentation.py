"""The documentation as the service serves it, under the rules that it gives to browsers."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.service_client import ServiceClient


def test_the_search_finds_a_setting(service: ServiceClient, page: Page) -> None:
    page.goto(f"{service.url}/docs/")
    page.get_by_role("textbox", name="Search").fill("LOOPWRIGHT_RECHECK_DAYS")
    page.locator(".md-search-result__link").first.click()
    expect(page.get_by_role("article").first).to_contain_text("LOOPWRIGHT_RECHECK_DAYS")


@pytest.mark.whole
def test_diagrams_are_drawn(service: ServiceClient, page: Page) -> None:
    page.goto(f"{service.url}/docs/repository/index.html")
    # It takes the place of its text, a ``pre``, when it is drawn.
    expect(page.locator("div.mermaid")).to_have_count(1)
    expect(page.locator("pre.mermaid")).to_have_count(0)
