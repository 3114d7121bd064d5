"""Who is let in, and what a guest is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Watched, row, sign_in
from tests.support.api_alone import ApiAlone
from tests.support.service_client import ServiceClient


@pytest.fixture(scope="module")
def empty_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceClient]:
    """An API over an empty database."""
    with ApiAlone(tmp_path_factory.mktemp("empty")) as service:
        yield service


@pytest.mark.whole
def test_an_empty_service_says_how_to_begin(fresh_page: Page, empty_service: ServiceClient) -> None:
    page = fresh_page
    sign_in(page, empty_service)
    expect(page.get_by_role("heading", name="Submit the first job")).to_be_visible()
    expect(page.get_by_text("loopwright job submit model.py")).to_be_visible()
    page.goto(f"{empty_service.url}/bests")
    expect(page.get_by_text("No schedule has been certified yet")).to_be_visible()
    page.goto(f"{empty_service.url}/jobs")
    page.get_by_role("link", name="Paste a program here").click()
    expect(page.get_by_role("heading", name="Submit a job")).to_be_visible()


def test_an_address_signs_one_browser_in(
    fresh_page: Page, browser: Browser, watched: Watched, service: ServiceClient
) -> None:
    url = service.login_url()
    fresh_page.goto(url)
    expect(fresh_page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    # The code is neither bookmarked nor shared, and no script can read what came of it.
    assert fresh_page.url == f"{service.url}/"
    fresh_page.reload()
    expect(fresh_page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    fresh_page.get_by_role("button", name="Sign out").click()
    expect(fresh_page.get_by_role("heading", name="Sign in")).to_be_visible()
    fresh_page.reload()
    expect(fresh_page.get_by_role("heading", name="Sign in")).to_be_visible()
    watched.expected.append("401 (Unauthorized)")
    with browser.new_context() as other:
        page = other.new_page()
        page.goto(url)
        expect(page.get_by_text("has signed a browser in before")).to_be_visible()
        page.get_by_label("Token", exact=True).fill(service.token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def test_a_link_makes_nobody_else_of_its_reader(page: Page, service: ServiceClient) -> None:
    answer = service.http.post("/api/v1/guest-links", json={})
    page.goto("about:blank")
    page.goto(f"{service.url}{answer.json()['path']}")
    page.get_by_role("navigation").get_by_role("link", name="Access").click()
    expect(page.get_by_text("You are signed in as owner.")).to_be_visible()
    page.goto("about:blank")
    page.goto(f"{service.url}/#code=wrong")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    assert page.url == f"{service.url}/"


def test_a_wrong_token_is_asked_for_again(
    fresh_page: Page, watched: Watched, service: ServiceClient, job: dict[str, Any]
) -> None:
    watched.expected.append("401 (Unauthorized)")
    fresh_page.goto(f"{service.url}/jobs/{job['id']}#guest=wrong")
    expect(fresh_page.get_by_text("Not signed in")).to_be_visible()
    fresh_page.get_by_label("Token", exact=True).fill("wrong again")
    fresh_page.get_by_role("button", name="Sign in").click()
    expect(fresh_page.get_by_text("does not accept this token")).to_be_visible()
    fresh_page.get_by_label("Token", exact=True).fill(service.token)
    fresh_page.get_by_role("button", name="Sign in").click()
    # The address is where it pointed all along.
    expect(fresh_page.get_by_role("heading", name="product")).to_be_visible()


def test_a_guest_looks_and_changes_nothing(
    page: Page, browser: Browser, watched: Watched, service: ServiceClient, job: dict[str, Any]
) -> None:
    page.goto(f"{service.url}/jobs/{job['id']}?tab=events")
    page.get_by_role("button", name="Share a read-only link").click()
    page.get_by_role("button", name="Create link").click()
    link = page.get_by_role("textbox", name="Link").input_value()
    assert f"/jobs/{job['id']}?tab=events#guest=" in link

    context = browser.new_context()
    watched.follow(context)
    guest = context.new_page()
    guest.goto(link)
    # The link opens the view that was shared.
    expect(guest.get_by_role("heading", name="product")).to_be_visible()
    expect(guest.get_by_text("The job has succeeded.")).to_be_visible()
    expect(guest.get_by_role("button", name="Download")).to_be_visible()
    for name in ("Submit again", "Cancel job", "Share a read-only link"):
        expect(guest.get_by_role("button", name=name)).to_have_count(0)
    expect(guest.get_by_role("link", name="Submit", exact=True)).to_have_count(0)
    guest.goto(f"{service.url}/submit")
    expect(guest.get_by_text("You cannot submit")).to_be_visible()
    expect(guest.get_by_role("link", name="Access", exact=True)).to_have_count(0)
    guest.goto(f"{service.url}/bests?q={job['tasks'][0]['workload_hash'][:12]}")
    expect(row(guest, "Best schedules", job["tasks"][0]["workload_hash"][:12])).to_be_visible()
    # What the page does not offer the service refuses.
    status = guest.evaluate(
        "async (id) => (await fetch(`/api/v1/jobs/${id}/cancel`, { method: 'POST' })).status",
        job["id"],
    )
    assert status == 403
    watched.expected.append("403 (Forbidden)")
    context.close()


@pytest.mark.whole
def test_an_admin_makes_users_and_sees_what_they_did(
    page: Page, browser: Browser, watched: Watched, service: ServiceClient
) -> None:
    page.get_by_role("navigation").get_by_role("link", name="Access").click()
    page.get_by_role("button", name="New user").click()
    page.get_by_role("textbox", name="Name").fill("grace")
    page.get_by_role("button", name="Create user").click()
    secret = page.get_by_role("textbox", name="The new token").input_value()
    page.get_by_role("button", name="Done").click()
    expect(row(page, "Users", "grace")).to_contain_text("submit")
    expect(row(page, "Audit log", "/api/v1/users").first).to_contain_text("make user")

    with browser.new_context() as other:
        watched.follow(other)
        hers = other.new_page()
        hers.goto(service.url)
        hers.get_by_label("Token", exact=True).fill(secret)
        hers.get_by_role("button", name="Sign in").click()
        hers.get_by_role("navigation").get_by_role("link", name="Access").click()
        expect(hers.get_by_text("You are signed in as grace.")).to_be_visible()
        expect(hers.get_by_role("heading", name="Users")).to_have_count(0)
        hers.get_by_role("button", name="New token").click()
        hers.get_by_role("textbox", name="Name").fill("notebook")
        hers.get_by_role("button", name="Create token").click()
        assert hers.get_by_role("textbox", name="The new token").input_value().startswith("lw_")
        hers.get_by_role("button", name="Done").click()
        expect(row(hers, "Tokens", "notebook")).to_contain_text("submit")
        hers.get_by_role("button", name="Revoke notebook").click()
        expect(row(hers, "Tokens", "notebook")).to_have_count(0)

        page.get_by_role("button", name="Disable grace").click()
        expect(row(page, "Users", "grace")).to_contain_text("disabled")
        watched.expected.append("401 (Unauthorized)")
        hers.reload()
        expect(hers.get_by_text("You were signed out")).to_be_visible(timeout=20_000)


@pytest.mark.whole
def test_a_form_stays_when_what_comes_above_it_pushes_its_button_away(page: Page) -> None:
    page.get_by_role("navigation").get_by_role("link", name="Access").click()
    page.get_by_role("button", name="New user").click()
    name = page.get_by_role("textbox", name="Name")
    name.fill("gra")
    page.evaluate("document.querySelector('main').style.paddingTop = '3000px'")
    expect(page.get_by_role("button", name="New user")).not_to_be_in_viewport()
    name.press_sequentially("ce")
    expect(name).to_have_value("grace")


@pytest.mark.whole
def test_colours_are_ones_choice(page: Page) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    page.get_by_role("button", name="Use dark colours").click()
    expect(page.get_by_role("button", name="Use light colours")).to_be_visible()
    assert background() != light
    page.reload()
    expect(page.get_by_role("button", name="Use light colours")).to_be_visible()


@pytest.mark.whole
def test_what_is_not_there_is_said(page: Page, watched: Watched, service: ServiceClient) -> None:
    watched.expected.append("404 (Not Found)")
    missing = (
        ("jobs/nosuch", "job"),
        ("records/nosuch", "record"),
        ("workloads/nosuch", "workload"),
        ("no/such", "page"),
    )
    for path, what in missing:
        page.goto(f"{service.url}/{path}")
        expect(page.get_by_role("heading", name=f"There is no such {what}")).to_be_visible()
    page.get_by_role("link", name="To the overview", exact=True).click()
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def test_a_failing_service_is_said_and_asked_again(page: Page, watched: Watched, service: ServiceClient) -> None:
    watched.expected.append("500 (Internal Server Error)")
    problem = '{"type":"about:blank","title":"Internal error","status":500,"detail":"The disk is full."}'
    page.route(
        re.compile("/api/v1/device-classes"),
        lambda route: route.fulfill(status=500, content_type="application/problem+json", body=problem),
    )
    page.goto(f"{service.url}/fleet")
    expect(page.get_by_role("alert").filter(has_text="The disk is full.")).to_be_visible()
    # The rest of the view is there.
    expect(page.get_by_role("table", name="Workers")).to_be_visible()
    page.unroute_all()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("table", name="Device classes")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
