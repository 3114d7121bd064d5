"""The fleet: workers, device classes, and who holds a job."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import row
from tests.support.played_service import PlayedService
from tests.support.programs import product_relu
from tests.support.service_client import ServiceClient


@pytest.mark.whole
def test_the_fleet_at_rest_and_at_work(page: Page, service: PlayedService, job: dict[str, Any]) -> None:
    page.goto(f"{service.url}/fleet")
    [worker] = service.items("/workers")
    line = row(page, "Workers", worker["id"])
    for text in ("llvm", f"of {worker['builders']}", str(worker["threads"]), worker["sandbox"]):
        expect(line).to_contain_text(text)
    device_class = row(page, "Device classes", worker["device_class"])
    expect(device_class).to_contain_text(re.compile(r"[GT]FLOP/s"))
    expect(device_class).to_contain_text("GB/s")
    expect(page.get_by_text("There is no lease")).to_be_visible()

    with service.stage.held(after=3):
        running = service.submit(product_relu(104), name="long search", trials=5_000)
        expect(row(page, "Leases", "long search")).to_be_visible()
        expect(line).to_contain_text("measuring")
        line.get_by_role("link").first.click()
        expect(page).to_have_url(f"{service.url}/jobs/{running}")
        service.http.post(f"/api/v1/jobs/{running}/cancel")
        service.finished(running)


@pytest.mark.whole
def test_its_bests_are_a_click_away(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.goto(f"{service.url}/fleet")
    [worker] = service.items("/workers")
    device_class = worker["device_class"]
    row(page, "Device classes", device_class).get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"/bests\\?device_class={device_class}"))
    page.get_by_role("textbox", name="Search").fill(job["tasks"][0]["workload_hash"][:12])
    expect(row(page, "Best schedules", job["tasks"][0]["workload_hash"][:12])).to_be_visible()
