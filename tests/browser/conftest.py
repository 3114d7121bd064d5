"""Real services and one real Chromium, and a page that may not complain and may not call other hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.support.chromium import chromium
from tests.support.service_client import ServiceClient

TIMES = "\N{MULTIPLICATION SIGN}"

# What is waited for is work of the service, on a machine that may be busy.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def job(finished_job: dict[str, Any]) -> dict[str, Any]:
    """A finished job named "product", of one task."""
    return finished_job


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


class Watched:
    """What a page's console said in anger, and which hosts it called."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.expected: list[str] = []
        """Parts of complaints that a test provokes: the browser's own line for a 404, say."""
        self.hosts: set[str] = set()

    def follow(self, context: BrowserContext) -> None:
        context.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    @property
    def complaints(self) -> list[str]:
        """Return the errors that the test does not expect.

        Chromium drops requests when the machine gets an address, as it does while other tests make hosts of their own.
        """
        expected = [*self.expected, "ERR_NETWORK_CHANGED"]
        return [text for text in self.errors if not any(part in text for part in expected)]


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def fresh_page(browser: Browser, watched: Watched) -> Iterator[Page]:
    """A page of a visitor who is not signed in. Fails the test on a console error or a call to another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    watched.follow(context)
    page = context.new_page()
    yield page
    context.close()
    assert watched.complaints == []
    assert len({host for host in watched.hosts if host}) <= 1


@pytest.fixture
def page(fresh_page: Page, service: ServiceClient) -> Page:
    """A page that has signed in to the shared service."""
    sign_in(fresh_page, service)
    return fresh_page


def sign_in(page: Page, service: ServiceClient) -> None:
    page.goto(service.login_url())
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def row(page: Page, table: str, text: str) -> Any:
    """The row of the named table that holds ``text``."""
    return page.get_by_role("table", name=table, exact=True).get_by_role("row").filter(has_text=text)
