"""The list of best schedules over 10,000 workloads: paged by the service, drawn as far as it is seen."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.leaderboard.seed import seed
from tests.browser.conftest import sign_in
from tests.support.api_alone import ApiAlone
from tests.support.service_client import ServiceClient

WORKLOADS = 10_000


@pytest.fixture(scope="module")
def seeded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceClient]:
    """An API over ``WORKLOADS`` certified workloads."""
    service = ApiAlone(tmp_path_factory.mktemp("seeded"))
    seed(service.database, WORKLOADS)
    with service:
        yield service


@pytest.fixture
def bests(fresh_page: Page, seeded_service: ServiceClient) -> Page:
    sign_in(fresh_page, seeded_service)
    fresh_page.goto(f"{seeded_service.url}/bests")
    expect(table(fresh_page)).to_be_visible()
    return fresh_page


def table(page: Page) -> Locator:
    return page.get_by_role("table", name="Best schedules", exact=True)


def names(page: Page) -> list[str]:
    """The names of the workloads that are drawn, from the top."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("tbody tr")]
            .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
            .map((row) => row.querySelector("td a")?.innerText ?? "")"""
    )
    return found


def expected(service: ServiceClient, **query: object) -> list[str]:
    return [item["name"] for item in service.get("/best-schedules", limit=5, **query)["items"]]


@pytest.mark.whole
def test_only_what_is_seen_is_drawn(bests: Page, seeded_service: ServiceClient) -> None:
    expect(table(bests)).to_have_attribute("aria-rowcount", str(WORKLOADS + 1))
    expect(bests.get_by_text("From row 1 of 10,000")).to_be_visible()
    assert 10 < len(names(bests)) < 100
    assert names(bests)[:5] == expected(seeded_service, sort="created")


@pytest.mark.whole
def test_sorting_is_the_services_and_the_addresss(bests: Page, seeded_service: ServiceClient) -> None:
    speedup = bests.get_by_role("columnheader", name="Speedup")
    speedup.get_by_role("button").click()
    expect(speedup).to_have_attribute("aria-sort", "descending")
    expect(bests).to_have_url(re.compile(r"sort=-speedup"))
    fastest = expected(seeded_service, sort="speedup", order="desc")
    expect(table(bests).get_by_role("row").nth(1)).to_contain_text(fastest[0])
    assert names(bests)[:5] == fastest
    speedup.get_by_role("button").click()
    expect(speedup).to_have_attribute("aria-sort", "ascending")
    slowest = expected(seeded_service, sort="speedup", order="asc")
    expect(table(bests).get_by_role("row").nth(1)).to_contain_text(slowest[0])
    bests.go_back()
    expect(table(bests).get_by_role("row").nth(1)).to_contain_text(fastest[0])


@pytest.mark.whole
def test_a_link_leads_to_the_row(bests: Page, seeded_service: ServiceClient) -> None:
    bests.goto(f"{seeded_service.url}/bests?sort=name&at=7000")
    far = seeded_service.get("/best-schedules", sort="name", order="asc", offset=7_000, limit=1)["items"][0]
    link = table(bests).get_by_role("link", name=far["name"], exact=True)
    expect(link).to_be_in_viewport()
    expect(bests.get_by_text("From row 7,001 of 10,000")).to_be_visible()
    # Scrolling writes where one is into the address.
    link.hover()
    bests.mouse.wheel(0, 52 * 300)
    expect(bests).to_have_url(re.compile(r"at=7[23]\d\d"))
    # And every row that is drawn is filled in.
    drawn = table(bests).locator("tbody tr")
    expect(drawn.filter(has_not=bests.get_by_role("link"))).to_have_count(0)


@pytest.mark.whole
def test_search_and_filters_narrow(bests: Page, seeded_service: ServiceClient) -> None:
    bests.get_by_role("textbox", name="Search").fill("softmax")
    expect(bests).to_have_url(re.compile("q=softmax"))
    found = seeded_service.get("/best-schedules", q="softmax", limit=1)["total"]
    assert 0 < found < WORKLOADS
    expect(table(bests)).to_have_attribute("aria-rowcount", str(found + 1))
    bests.get_by_label("Device class").select_option(index=1)
    expect(bests).to_have_url(re.compile("device_class="))
    expect(table(bests)).not_to_have_attribute("aria-rowcount", str(found + 1))
    bests.go_back()
    expect(table(bests)).to_have_attribute("aria-rowcount", str(found + 1))
    bests.get_by_role("textbox", name="Search").fill("no such thing")
    expect(bests.get_by_text("No certified schedule matches")).to_be_visible()
    bests.get_by_role("button", name="Clear all").click()
    expect(table(bests)).to_have_attribute("aria-rowcount", str(WORKLOADS + 1))
    expect(bests.get_by_role("textbox", name="Search")).to_have_value("")


@pytest.mark.whole
def test_what_is_shown_is_kept_as_csv(bests: Page, seeded_service: ServiceClient, tmp_path: Path) -> None:
    bests.goto(f"{seeded_service.url}/bests?q=softmax&op=softmax&sort=-speedup")
    expect(table(bests)).to_be_visible()
    with bests.expect_download() as download:
        bests.get_by_role("button", name="Download CSV").click()
    path = tmp_path / "bests.csv"
    download.value.save_as(path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    shown = {"q": "softmax", "op": "softmax", "sort": "speedup", "order": "desc"}
    assert len(rows) == seeded_service.get("/best-schedules", limit=1, **shown)["total"]
    assert [line["name"] for line in rows[:5]] == expected(seeded_service, **shown)


@pytest.mark.whole
def test_the_keyboard_goes_down_the_list(bests: Page) -> None:
    bests.locator("div[tabindex='0']:has(> table)").focus()
    bests.keyboard.press("End")
    expect(bests.get_by_text(re.compile(r"From row 9,9\d\d of 10,000"))).to_be_visible()
    expect(table(bests).locator("tbody tr").last.get_by_role("link").first).to_be_visible()


@pytest.mark.whole
def test_the_first_view_fetches_no_other_views_code(bests: Page, seeded_service: ServiceClient) -> None:
    """What makes it quick; how quick it is, benchmarks/leaderboard measures."""
    bests.goto(seeded_service.url)
    bests.get_by_role("link", name="fused").first.wait_for()
    bests.wait_for_load_state("networkidle")
    fetched = bests.evaluate(
        "() => performance.getEntriesByType('resource').map((each) => [each.name, each.encodedBodySize])"
    )
    assert [name for name, _ in fetched if re.search(r"/assets/[\w-]*(page|chart|pane)-", name)] == []
    # Not the rows of all workloads, either.
    assert sum(size for _, size in fetched) < 1_500_000
