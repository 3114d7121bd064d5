"""What a page shows of a job while a real fleet measures."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import row, sign_in
from tests.support.programs import product_relu
from tests.support.service import Service
from tests.support.waiting import wait_for


@pytest.mark.whole
def test_a_running_job_is_followed_without_reloading(fresh_page: Page, real_service: Service) -> None:
    page, service = fresh_page, real_service
    sign_in(page, service)
    job_id = service.submit(product_relu(56), name="live", trials=24)
    page.goto(f"{service.url}/jobs")
    row(page, "Jobs", "live").get_by_role("link").click()
    expect(page).to_have_url(f"{service.url}/jobs/{job_id}")
    page.evaluate("window.notReloaded = true")
    seen: set[str] = set()
    said_left = False

    def look() -> bool:
        nonlocal said_left
        text = page.get_by_role("main").inner_text()
        seen.update(re.findall(r"(\d+) of 24 trials", text))
        said_left = said_left or bool(re.search(r"about .* left", text))
        return "certified" in text and "succeeded" in text

    wait_for("the end of the job on the page", look, 240)
    assert "24" in seen
    assert len(seen) > 2, f"trials came all at once: {seen}"
    assert said_left
    plot = page.get_by_role("img", name=re.compile(r"main: \d{2,3} trials measured"))
    expect(plot).to_be_visible()
    expect(plot).to_contain_text("best so far")
    expect(plot).to_contain_text(re.compile("baseline .*µs"))
    expect(plot).to_contain_text(re.compile("NumPy .*µs"))
    expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)
    assert page.evaluate("window.notReloaded")
    page.get_by_role("tab", name="Calibration").click()
    first = re.compile(r"main:\d+: \d+ starting points? ran.*\. The first took .*(as long as|no trial was faster)")
    expect(page.get_by_role("img", name=first)).to_contain_text("fastest trial")
