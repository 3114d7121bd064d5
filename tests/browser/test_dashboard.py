"""The dashboard in a real browser, over a real service."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.harness import Service, wait_for
from tests.browser.conftest import Watched, sign_in, token_of
from tests.unit.client.programs import MM_RELU

TIMES = "\N{MULTIPLICATION SIGN}"


def program(size: int) -> str:
    return MM_RELU.replace("64", str(size))


@pytest.fixture(scope="session")
def job(service: Service) -> dict[str, Any]:
    """A finished job."""
    return service.tuned(MM_RELU, name="product", trials=12)


def row(page: Page, table: str, text: str) -> Any:
    return page.get_by_role("table", name=table).get_by_role("row").filter(has_text=text)


def cancel(page: Page) -> None:
    page.get_by_role("main").get_by_role("button", name="Cancel job").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()


def test_the_printed_address_signs_in(fresh_page: Page, service: Service) -> None:
    sign_in(fresh_page, service)
    # The token is neither bookmarked nor shared.
    assert fresh_page.url == f"{service.url}/"
    fresh_page.reload()
    expect(fresh_page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
    fresh_page.get_by_role("button", name="Sign out").click()
    expect(fresh_page.get_by_role("heading", name="Sign in")).to_be_visible()
    fresh_page.reload()
    expect(fresh_page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_wrong_token_is_asked_for_again(
    fresh_page: Page, watched: Watched, service: Service, job: dict[str, Any]
) -> None:
    watched.expected.append("401 (Unauthorized)")
    fresh_page.goto(f"{service.url}/jobs/{job['id']}?token=wrong")
    expect(fresh_page.get_by_text("does not accept this token")).to_be_visible()
    fresh_page.get_by_label("Token", exact=True).fill("wrong again")
    fresh_page.get_by_role("button", name="Sign in").click()
    expect(fresh_page.get_by_text("does not accept this token")).to_be_visible()
    fresh_page.get_by_label("Token", exact=True).fill(token_of(service))
    fresh_page.get_by_role("button", name="Sign in").click()
    # The address is where it pointed all along.
    expect(fresh_page.get_by_role("heading", name="product")).to_be_visible()


def test_the_list_of_jobs_is_live(page: Page, service: Service) -> None:
    expect(page.get_by_text("1 worker ready")).to_be_visible()
    service.submit(program(24), name="newcomer", trials=4)
    newcomer = row(page, "Jobs", "newcomer")
    expect(newcomer).to_contain_text("succeeded")
    expect(newcomer).to_contain_text("4 of 4")
    expect(newcomer).to_contain_text(re.compile(rf"\d{TIMES}"))


def test_a_running_job_is_followed_without_reloading(page: Page, service: Service) -> None:
    job_id = service.submit(program(56), name="live", trials=96)
    row(page, "Jobs", "live").get_by_role("link").click()
    expect(page).to_have_url(f"{service.url}/jobs/{job_id}")
    page.evaluate("window.notReloaded = true")
    seen: set[str] = set()

    def look() -> bool:
        text = page.get_by_role("main").inner_text()
        seen.update(re.findall(r"(\d+) of 96 trials", text))
        return "certified" in text and "succeeded" in text

    wait_for("the end of the job on the page", look, 240)
    assert "96" in seen
    assert len(seen) > 2, f"trials came all at once: {seen}"
    plot = page.get_by_role("img", name=re.compile(r"main: \d{2,3} trials measured"))
    expect(plot).to_be_visible()
    expect(plot).to_contain_text("best so far")
    expect(plot).to_contain_text(re.compile("baseline .*µs"))
    expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)
    assert page.evaluate("window.notReloaded")


def test_tasks_lead_to_records(page: Page, service: Service, job: dict[str, Any]) -> None:
    page.goto(f"{service.url}/jobs/{job['id']}")
    [task] = job["tasks"]
    line = row(page, "Tasks", task["workload_hash"][:12])
    for text in ("main", "succeeded", "certified", "search", "µs", TIMES):
        expect(line).to_contain_text(text)
    line.get_by_role("link", name="main").click()
    expect(page).to_have_url(f"{service.url}/records/{task['record_id']}")
    expect(page.get_by_text("Before: unscheduled")).to_be_visible()
    expect(page.get_by_text("After: scheduled")).to_be_visible()
    code = page.locator("pre")
    expect(code.nth(0)).to_contain_text("for i, j, k in T.grid(64, 64, 64)")
    expect(code.nth(1)).to_contain_text(re.compile(r"T\.(parallel|vectorized)"))
    for text in (
        "It computes the same.",
        "It is as fast as it says.",
        "interleaved rounds",
        "samples",
        task["workload_hash"],
    ):
        expect(page.get_by_role("main")).to_contain_text(text)
    expect(page.get_by_role("heading", name="Trace")).to_be_visible()


def test_bests_are_listed(page: Page, service: Service, job: dict[str, Any]) -> None:
    page.get_by_role("link", name="Best schedules").click()
    best = row(page, "Best schedules", job["tasks"][0]["workload_hash"][:12])
    for text in ("main", "llvm", "µs", TIMES, "certified"):
        expect(best).to_contain_text(text)
    best.get_by_role("link").click()
    expect(page.get_by_text("After: scheduled")).to_be_visible()


def test_a_job_is_cancelled(page: Page, service: Service) -> None:
    job_id = service.submit(program(88), name="endless", trials=5_000)
    page.goto(f"{service.url}/jobs/{job_id}")
    page.get_by_role("main").get_by_role("button", name="Cancel job").click()
    page.get_by_role("button", name="Keep running").click()
    cancel(page)
    expect(page.get_by_text("cancelled").first).to_be_visible()
    assert service.finished(job_id)["state"] == "cancelled"


def test_what_is_not_there_is_said(page: Page, watched: Watched, service: Service) -> None:
    watched.expected.append("404 (Not Found)")
    for path, what in (("jobs/nosuch", "job"), ("records/nosuch", "record"), ("no/such", "page")):
        page.goto(f"{service.url}/{path}")
        expect(page.get_by_role("heading", name=f"There is no such {what}")).to_be_visible()
    page.get_by_role("link", name="To the jobs", exact=True).click()
    expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()


def test_colours_are_ones_choice(page: Page) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    page.get_by_role("button", name="Use dark colours").click()
    expect(page.get_by_role("button", name="Use light colours")).to_be_visible()
    assert background() != light
    page.reload()
    expect(page.get_by_role("button", name="Use light colours")).to_be_visible()


def test_a_stopped_service_is_missed_and_found_again(page: Page, service: Service, watched: Watched) -> None:
    watched.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "503 (Service Unavailable)"]
    job_id = service.submit(program(40), name="interrupted", trials=200)
    page.goto(f"{service.url}/jobs/{job_id}")
    service.in_the_middle(job_id)
    service.stop()
    expect(page.get_by_text("Connection lost, retrying")).to_be_visible()
    service.start()
    expect(page.get_by_text("Connection lost, retrying")).to_have_count(0)
    cancel(page)
    expect(page.get_by_text("cancelled").first).to_be_visible()
