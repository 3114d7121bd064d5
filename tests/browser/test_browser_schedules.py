"""Workloads and schedules: what the search decided, how near the peak it came, what the program became."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import TIMES, row
from tests.support.service_client import ServiceClient


def test_a_task_leads_to_its_workload_and_its_schedule(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.goto(f"{service.url}/jobs/{job['id']}")
    [task] = job["tasks"]
    line = row(page, "Tasks", task["workload_hash"][:12])
    line.get_by_role("link", name="main").click()
    expect(page).to_have_url(f"{service.url}/workloads/{task['workload_hash']}")
    expect(page.get_by_role("heading", name="Decisions", exact=True)).to_be_visible()
    page.go_back()
    line.get_by_role("link", name="µs").click()
    expect(page).to_have_url(f"{service.url}/records/{task['record_id']}")
    expect(page.get_by_text("Before: unscheduled")).to_be_visible()


def test_the_program_before_and_after(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    [task] = job["tasks"]
    page.goto(f"{service.url}/records/{task['record_id']}")
    before = page.get_by_role("region", name="Before: unscheduled")
    after = page.get_by_role("region", name="After: scheduled")
    # A changed line stands on a tinted ground, its changed words are marked.
    expect(before.locator("[data-kind=removed]").filter(has_text="T.grid(64, 64, 64)")).to_be_visible()
    added = after.locator("[data-kind=added]").filter(has_text=re.compile(r"T\.(parallel|vectorized|unroll|serial)"))
    expect(added.first).to_be_visible()
    expect(after.locator("mark").first).to_be_visible()
    expect(before.locator(".hljs-keyword").first).to_be_visible()
    expect(before).to_contain_text(re.compile(r"\d+ equal lines"))
    page.get_by_role("button", name="Show all lines").click()
    expect(page).to_have_url(re.compile("all=1"))
    expect(before).to_contain_text("class Module")
    page.get_by_text("Trace as code").click()
    expect(page).to_have_url(re.compile("program=trace"))
    expect(page.locator("pre").filter(has_text="sch.")).to_contain_text("sch.sample_")


def test_what_is_proven_and_how_to_find_it_again(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    [task] = job["tasks"]
    page.goto(f"{service.url}/records/{task['record_id']}")
    main = page.get_by_role("main")
    for text in (
        "Same results.",
        "Measured speedup",
        "interleaved rounds",
        "samples",
        task["workload_hash"],
        "product",
        f"loopwright job resubmit {job['id']}",
        f'client.job("{job["id"]}")',
    ):
        expect(main).to_contain_text(text)


@pytest.mark.whole
def test_the_state_of_the_gpu_is_said_where_it_is_known(
    page: Page, service: ServiceClient, job: dict[str, Any]
) -> None:
    record_id = job["tasks"][0]["record_id"]
    state = {"sm_mhz": 1980, "memory_mhz": 2619, "celsius": 61, "watts": 412, "throttled": ["power_cap"]}

    def with_state(route: Route) -> None:
        record = route.fetch().json()
        assert record["device_state"] is record["certificate"]["device_state"] is None  # a CPU
        record["device_state"] = state
        record["certificate"]["device_state"] = state | {"throttled": []}
        route.fulfill(json=record)

    page.route(f"**/api/v1/records/{record_id}", with_state)
    page.goto(f"{service.url}/records/{record_id}")
    words = "1980\u00a0MHz, memory 2619\u00a0MHz, 61\u00a0°C, 412\u00a0W"
    expect(page.get_by_text(f"{words}, throttled: power cap", exact=True)).to_be_visible()
    expect(page.get_by_text(f"The GPU after the race: {words}, not throttled.")).to_be_visible()


@pytest.mark.whole
def test_signatures_say_whose_key_it_is_and_that_it_is_revoked(
    page: Page, service: ServiceClient, job: dict[str, Any]
) -> None:
    record_id = job["tasks"][0]["record_id"]
    keys = service.items("/keys")
    slowdown = {"value": 1.004, "low": 0.99, "high": 1.02}
    document = {"format": 1, "kind": "recheck", "result": {"verdict": "holds", "slowdown": slowdown}}
    verdict = {"document": json.dumps(document), "key_id": "0123456789abcdef", "signature": ""}

    def with_signatures(route: Route) -> None:
        record = route.fetch().json()
        assert record["certificate"]["signed"]["key_id"] == keys[0]["id"]
        record["certificate"] |= {"checked_at": job["created_at"], "verdict": verdict}
        record["imported_certificate"] = {
            "signed": verdict,
            "public_key": "",
            "signed_by": "another deployment",
            "imported_at": job["created_at"],
        }
        route.fulfill(json=record)

    page.route(f"**/api/v1/records/{record_id}", with_signatures)
    page.goto(f"{service.url}/records/{record_id}")
    main = page.get_by_role("main")
    expect(main).to_contain_text(f"The certificate is signed with the key {keys[0]['id']}. loopwright verifies")
    expect(main).to_contain_text("holds with a slowdown of 1.004 (0.990 to 1.020).")
    expect(page.get_by_role("alert")).to_contain_text(
        "The verdict is signed with the key 0123456789abcdef, which is none of this service's keys"
    )
    expect(main).to_contain_text("a certificate that another deployment has signed (key 0123456789abcdef)")
    revoked = [key | {"revoked_at": job["created_at"]} for key in keys]
    page.route("**/api/v1/keys", lambda route: route.fulfill(json={"items": revoked, "next_page_token": None}))
    page.reload()
    expect(page.get_by_role("alert").first).to_contain_text(f"{keys[0]['id']}, which is revoked: others may have it")


@pytest.mark.whole
@pytest.mark.parametrize(("level", "tone"), [("landlock", "neutral"), ("none", "warn")])
def test_the_walls_are_named_where_they_are_known(
    page: Page, service: ServiceClient, job: dict[str, Any], level: str, tone: str
) -> None:
    record_id = job["tasks"][0]["record_id"]

    def with_level(route: Route) -> None:
        record = route.fetch().json()
        record["sandbox"] = record["certificate"]["sandbox"] = level
        route.fulfill(json=record)

    page.route(f"**/api/v1/records/{record_id}", with_level)
    page.goto(f"{service.url}/records/{record_id}")
    expect(page.get_by_text("Same results.")).to_be_visible()
    expect(page.get_by_text("Sandbox")).to_have_count(2)
    expect(page.locator(f"[data-tone={tone}]").filter(has_text=re.compile(f"^{level}$"))).to_have_count(2)


@pytest.mark.whole
def test_rejected_contenders_are_listed_with_their_reasons(
    page: Page, service: ServiceClient, job: dict[str, Any]
) -> None:
    [task] = job["tasks"]
    record_id = task["record_id"]
    wrong = {"candidate": "c" * 32, "record_id": record_id, "stage": "certify", "kind": "WRONG_RESULT"}
    broken = {"candidate": "d" * 32, "record_id": None, "stage": "build", "kind": "COMPILE"}
    rejected = [wrong | {"message": "argument 2 differs by up to 0.5"}, broken | {"message": "no such block"}]

    def with_rejected_contenders(route: Route) -> None:
        record = route.fetch().json()
        record["certificate"]["rejected"] = rejected
        route.fulfill(json=record)

    page.route(f"**/api/v1/records/{record_id}", with_rejected_contenders)
    page.goto(f"{service.url}/records/{record_id}")
    listed = page.get_by_role("region", name="Rejected contenders: 2")
    for text in ("wrong result", "argument 2 differs by up to 0.5", "did not compile", "no such block"):
        expect(listed).to_contain_text(text)
    expect(listed.get_by_role("link")).to_have_count(1)
    expect(listed.get_by_role("link", name="c" * 12)).to_have_attribute("href", f"/records/{record_id}")


@pytest.mark.whole
def test_machine_code_on_demand(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    [task] = job["tasks"]
    page.goto(f"{service.url}/records/{task['record_id']}")
    page.get_by_role("button", name="Compile and show").click()
    code = page.get_by_role("region", name="Assembly", exact=True)
    expect(code).to_contain_text(re.compile(r"j\w+\s*\.LBB"))
    expect(code).not_to_contain_text("retq")
    expect(code.locator(".hljs-keyword").first).to_be_visible()
    expect(page.get_by_text(re.compile("^Hot loop. Lines .* at least .* cycles?, limited by"))).to_be_visible()
    page.get_by_text("All code").click()
    expect(code).to_contain_text("retq")
    expect(code).not_to_contain_text(".cfi_startproc")
    page.get_by_label("Directives").click()
    expect(code).to_contain_text(".cfi_startproc")
    # A line of the program picks its instructions, and the line that it computes.
    program = page.get_by_role("region", name="Program as compiled")
    program.locator("[data-hot]").get_by_role("button").first.click()
    expect(program.locator("[data-picked]")).to_have_count(1)
    expect(code.locator("[data-picked][data-hot]").first).to_be_visible()
    expect(page.get_by_role("region", name="Unscheduled program").locator("[data-picked]")).to_contain_text("+ A[")
    # The address remembers what is shown.
    page.reload()
    expect(code.locator("[data-picked]").first).to_be_visible()
    expect(page).to_have_url(re.compile("line=.*"))


@pytest.mark.whole
def test_brushing_filters_the_trials(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    [task] = job["tasks"]
    page.goto(f"{service.url}/workloads/{task['workload_hash']}")
    trials = page.get_by_role("table", name="Trials")
    expect(trials.get_by_role("row")).to_have_count(11)
    plot = page.get_by_role("img", name=re.compile("Parallel coordinates of"))
    expect(plot).to_contain_text("latency")
    box = plot.bounding_box()
    assert box is not None
    # The rightmost axis is the latency, the fastest at the top: its upper half is kept.
    x = box["x"] + box["width"] - 72
    page.mouse.move(x, box["y"] + 34)
    page.mouse.down()
    page.mouse.move(x, box["y"] + 120, steps=5)
    page.mouse.move(x, box["y"] + 180, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile("brush=latency"))
    told = page.get_by_role("status").filter(has_text=re.compile(r"\d+ of \d+ trials"))
    expect(told).to_be_visible()
    kept = told.inner_text()
    # The address is the view: opened anew it shows the same.
    page.reload()
    expect(told).to_have_text(kept)
    page.get_by_role("button", name="Remove the filter on latency").click()
    expect(told).to_have_count(0)

    # The same without a mouse.
    page.get_by_label("Filter on").select_option("latency")
    page.get_by_label("To µs").fill("0.001")
    page.get_by_role("button", name="Add filter").click()
    expect(page.get_by_text(re.compile(r"^0 of \d+ trials"))).to_be_visible()


@pytest.mark.whole
def test_what_the_model_knew_and_how_near_the_peak(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    [task] = job["tasks"]
    page.goto(f"{service.url}/workloads/{task['workload_hash']}")
    expect(row(page, "History of bests", "product")).to_contain_text("best")
    expect(page.get_by_role("table", name="Which decisions matter").get_by_role("row").nth(1)).to_contain_text("%")
    predictions = page.get_by_role("img", name=re.compile(r"\d+ predictions in \d+ rounds?"))
    expect(predictions).to_contain_text("Rank correlation, by round")
    page.get_by_label("Round shown").select_option(index=1)
    expect(page).to_have_url(re.compile("round=1"))
    roofline = page.get_by_role("img", name=re.compile("^Roofline: baseline .*, best .*L2 200 GB.s"))
    expect(roofline).to_contain_text(re.compile("best.*FLOP/s"))
    expect(page.get_by_text("Limited by", exact=True)).to_be_visible()


@pytest.mark.whole
def test_any_two_are_compared(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    [task] = job["tasks"]
    page.goto(f"{service.url}/workloads/{task['workload_hash']}")
    picks = page.get_by_role("checkbox", name=re.compile("^Compare "))
    picks.nth(0).check()
    expect(page.get_by_role("button", name="Compare selected")).to_be_disabled()
    picks.nth(1).check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page).to_have_url(re.compile(r"/compare\?a=\w+&b=\w+"))
    expect(row(page, "Facts", "Latency, ")).to_contain_text("µs")
    expect(page.get_by_role("region", name=re.compile("^Left: main"))).to_be_visible()
    page.get_by_text("Trace as code").click()
    expect(page).to_have_url(re.compile("show=trace"))
    expect(page.get_by_role("region", name=re.compile("^Right: main"))).to_contain_text("sch.")

    page.goto(f"{service.url}/records/{task['record_id']}")
    page.get_by_role("button", name="Compare with").click()
    page.get_by_role("dialog").get_by_role("link").filter(has_text="baseline").click()
    expect(row(page, "Facts", "Origin")).to_contain_text("baseline")
    # Both ran in the closing race.
    expect(row(page, "Facts", "Relative speed, in the closing race")).to_contain_text(TIMES)

    page.goto(f"{service.url}/compare")
    page.get_by_label("Left", exact=True).fill(f"{service.url}/records/{task['record_id']}")
    page.get_by_label("Right", exact=True).fill(task["record_id"])
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_text("Both sides are the same.")).to_be_visible()


@pytest.mark.whole
def test_the_best_schedules_lead_here(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.get_by_role("link", name="Best schedules", exact=True).click()
    [task] = job["tasks"]
    page.get_by_role("textbox", name="Search").fill(task["workload_hash"][:12])
    best = row(page, "Best schedules", task["workload_hash"][:12])
    for text in ("main", "matmul", f"64{TIMES}64", "llvm", "µs", "%", "certified", "product"):
        expect(best).to_contain_text(text)
    best.get_by_role("link", name="µs").click()
    expect(page.get_by_text("After: scheduled")).to_be_visible()


@pytest.mark.whole
def test_a_link_that_is_followed_while_typing_is_not_called_back(
    page: Page, service: ServiceClient, job: dict[str, Any]
) -> None:
    """What is typed enters the address a moment later; by then a view that is still loading may have been asked for."""
    [task] = job["tasks"]
    digest = task["workload_hash"]
    page.goto(f"{service.url}/bests?q={digest[:10]}")
    link = row(page, "Best schedules", digest[:12]).get_by_role("link", name="µs")
    expect(link).to_be_visible()
    held: list[Route] = []
    page.route("**/assets/*.js", lambda route: held.append(route))
    page.get_by_role("textbox", name="Search").fill(digest[:12])
    link.click()
    page.wait_for_timeout(1000)
    assert held, "the view was loaded before"
    for route in held:
        route.continue_()
    page.unroute_all()
    expect(page.get_by_text("After: scheduled")).to_be_visible()
    expect(page).to_have_url(f"{service.url}/records/{task['record_id']}")
