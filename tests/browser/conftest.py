"""Real services and one real Chromium, and a page that may not complain and may not call other hosts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.support.chromium import chromium
from tests.support.programs import MM_RELU
from tests.support.service import ROOT, Service

WORKLOADS = 100_000
TIMES = "\N{MULTIPLICATION SIGN}"

# What is waited for is work of the service, on a machine that may be busy.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Starts with an empty database, and lets guests in."""
    service = Service(tmp_path_factory.mktemp("browser"))
    service.environment["LOOPWRIGHT_GUESTS"] = "true"
    try:
        service.start()
        yield service
    finally:
        service.destroy()


class Seeding(NamedTuple):
    database: Path
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="session", autouse=True)
def seeding(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeding | None]:
    """Fills a database with ``WORKLOADS`` certified workloads while other tests run; None where none will want it."""
    if not any("seeded_service" in getattr(item, "fixturenames", ()) for item in request.session.items):
        yield None
        return
    database = tmp_path_factory.mktemp("seed") / "loopwright.db"
    seed = [sys.executable, "-m", "benchmarks.leaderboard.seed"]
    command = [*seed, f"sqlite:///{database}", "--workloads", str(WORKLOADS)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        yield Seeding(database, process)


@pytest.fixture(scope="session")
def seeded_service(tmp_path_factory: pytest.TempPathFactory, seeding: Seeding) -> Iterator[Service]:
    """Starts with ``WORKLOADS`` certified workloads in its database."""
    assert seeding.process.wait() == 0
    service = Service(tmp_path_factory.mktemp("seeded"), f"sqlite:///{seeding.database}")
    try:
        service.start()
        yield service
    finally:
        service.destroy()


@pytest.fixture(scope="session")
def job(service: Service) -> dict[str, Any]:
    """A finished job with one task and enough trials for the cost model to have said something."""
    return service.tuned(MM_RELU, name="product", trials=32)


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
        return [text for text in self.errors if not any(part in text for part in self.expected)]


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
def page(fresh_page: Page, service: Service) -> Page:
    """A page that has signed in to the shared service."""
    sign_in(fresh_page, service)
    return fresh_page


def token_of(service: Service) -> str:
    return (service.data_dir / "token").read_text().strip()


def sign_in(page: Page, service: Service, token: str | None = None) -> None:
    page.goto(f"{service.url}/?token={token or token_of(service)}")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def row(page: Page, table: str, text: str) -> Any:
    """The row of the named table that holds ``text``."""
    return page.get_by_role("table", name=table, exact=True).get_by_role("row").filter(has_text=text)


def program(size: int) -> str:
    """A product of matrices of its own: no other test has tuned it."""
    return MM_RELU.replace("64", str(size))
