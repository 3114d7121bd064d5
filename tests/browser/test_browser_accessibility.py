"""Every view, light and dark, by axe-core's rules; and none wider than a phone."""

from __future__ import annotations

import json
import time
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import Watched, sign_in
from tests.support.service import ROOT
from tests.support.service_client import ServiceClient

AXE = ROOT / "service/dashboard/node_modules/axe-core/axe.min.js"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PHONE: ViewportSize = {"width": 360, "height": 780}
DESK: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def views(service: ServiceClient, job: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Address and what is there when the view is complete, by name of the view."""
    [task] = job["tasks"]
    workload, record = task["workload_hash"], task["record_id"]
    baseline = service.get("/records", workload_hash=workload, sort="latency", page_size=500)["items"][-1]["id"]
    return {
        "overview": ("/", "Recent bests"),
        "jobs": ("/jobs", "succeeded"),
        "job": (f"/jobs/{job['id']}", "baseline"),
        "events": (f"/jobs/{job['id']}?tab=events", "The job has succeeded."),
        "failures": (f"/jobs/{job['id']}?tab=failures", "Activity"),
        "coverage": (f"/jobs/{job['id']}?tab=coverage", "Values tried"),
        "compare jobs": (f"/jobs/compare?a={job['id']}&b={job['id']}", "The same in both"),
        "bests": ("/bests", "certified"),
        "workload": (f"/workloads/{workload}", "Rank correlation, by round"),
        "record": (f"/records/{record}?assembly=1", "Assembly"),
        "trace": (f"/records/{record}?program=trace", "sch."),
        "compare": (f"/compare?a={record}&b={baseline}", "Left: main"),
        "choose": ("/compare", "Paste the ids"),
        "fleet": ("/fleet", "Peak arithmetic"),
        "submit": ("/submit", "Preview"),
        "access": ("/access", "Audit log"),
        "missing": ("/nowhere", "no such page"),
    }


COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe-core whose outcome depends on the colour scheme."""


def violations(page: Page, rules: list[str] | None) -> list[str]:
    """Return what axe-core objects to, in words; all its rules are checked unless some are named."""
    page.evaluate(AXE.read_text())
    options = {"runOnly": rules} if rules else {}
    found = page.evaluate("(options) => axe.run(options).then((result) => result.violations)", options)
    return [
        f"{page.url}: {each['id']}, {each['help']}: {json.dumps([node['html'][:200] for node in each['nodes'][:3]])}"
        for each in found
    ]


def comes_true(page: Page, expression: str, seconds: float = 30.0) -> bool:
    """Ask until it is true. Playwright's own way to wait is an eval in the page, which the page's policy forbids."""
    until = time.monotonic() + seconds
    while not page.evaluate(expression):
        if time.monotonic() > until:
            return False
        page.wait_for_timeout(50)
    return True


def in_both_schemes(page: Page) -> list[str]:
    broken = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        # A colour half way between two is nobody's choice.
        assert comes_true(page, "document.getAnimations().length === 0")
        broken += [f"{scheme}: {each}" for each in violations(page, None if scheme == "light" else COLOURS)]
    return broken


@pytest.mark.parametrize("names", [("job",), pytest.param((), marks=pytest.mark.whole, id="all")], ids=["one", "all"])
def test_no_view_breaks_a_rule_or_outgrows_a_phone(
    fresh_page: Page,
    watched: Watched,
    service: ServiceClient,
    views: dict[str, tuple[str, str]],
    names: tuple[str, ...],
) -> None:
    page = fresh_page
    page.goto(service.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    broken = in_both_schemes(page)
    sign_in(page, service)
    wide = []
    for name, (path, complete) in ((name, views[name]) for name in names or views):
        page.goto(f"{service.url}{path}")
        expect(page.get_by_text(complete).filter(visible=True).first).to_be_visible()
        page.wait_for_load_state("networkidle")
        broken += in_both_schemes(page)
        page.set_viewport_size(PHONE)
        # A plot is drawn again a moment after its place has another width.
        if not comes_true(page, f"document.documentElement.scrollWidth <= {PHONE['width']}"):
            wide.append(f"{name}: {page.evaluate('document.documentElement.scrollWidth')} px")
        page.set_viewport_size(DESK)
    assert broken == []
    assert wide == []


@pytest.mark.whole
def test_no_dialog_breaks_a_rule(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.get_by_role("button", name="Share a read-only link").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    broken = in_both_schemes(page)
    page.goto(f"{service.url}/jobs/{job['id']}")
    for name in ("Download", "Submit again"):
        page.get_by_role("button", name=name).click()
        expect(page.locator("[role=dialog], [role=menu]")).to_be_visible()
        broken += in_both_schemes(page)
        page.keyboard.press("Escape")
    assert broken == []


@pytest.mark.whole
def test_the_keyboard_reaches_everything(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.goto(f"{service.url}/jobs/{job['id']}")
    expect(page.get_by_role("heading", name="product")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("main").get_by_role("link", name="Jobs")).to_be_focused()
    # A view that is opened by a link takes the focus, so that the next Tab is in it.
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
    expect(page.get_by_role("main")).to_be_focused()
