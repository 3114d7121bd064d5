"""Submitting from the page: pasted, dropped, looked at before it is sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import TIMES, Watched, row
from tests.browser.test_browser_accessibility import in_both_schemes
from tests.support.programs import MM_RELU, product_relu
from tests.support.service_client import ServiceClient


def test_pasted_previewed_sent(page: Page, service: ServiceClient) -> None:
    page.get_by_role("link", name="Submit", exact=True).click()
    page.get_by_role("textbox", name="Module").fill(product_relu(72))
    page.get_by_label("Name").fill("pasted")
    page.get_by_label("Trials").fill("4")
    jobs = len(service.items("/jobs"))
    page.get_by_role("button", name="Preview").click()
    task = row(page, "What will be tuned", "main")
    for text in ("matmul", f"72{TIMES}72", "FLOP", "searched"):
        expect(task).to_contain_text(text)
    assert len(service.items("/jobs")) == jobs, "a preview stores nothing"
    page.get_by_role("button", name="Use 16").click()
    expect(page.get_by_label("Trials")).to_have_value("16")
    expect(task).to_be_visible()
    page.get_by_label("Name").fill("pasted again")
    page.get_by_label("Tags").fill("by hand, ")
    expect(task).to_be_visible()
    page.get_by_role("button", name="Submit job").click()
    expect(page.get_by_role("heading", name="pasted again")).to_be_visible()
    expect(page.get_by_role("link", name="Jobs tagged by hand")).to_be_visible()
    expect(page.get_by_text("16 of 16 trials")).to_be_visible()
    assert len(service.items("/jobs")) == jobs + 1
    service.finished(page.url.rsplit("/", 1)[1])


def test_a_file_that_is_known_already(page: Page, service: ServiceClient, job: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "product_again.py"
    file.write_text(MM_RELU)
    page.goto(f"{service.url}/submit")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(file)
    expect(page.get_by_label("Name")).to_have_value("product_again")
    page.get_by_label("Trials").fill("8")
    page.get_by_role("button", name="Preview").click()
    task = row(page, "What will be tuned", "main")
    expect(task).to_contain_text("answered at once")
    task.get_by_role("link", name="µs").click()
    expect(page).to_have_url(f"{service.url}/records/{job['tasks'][0]['record_id']}")


@pytest.mark.whole
def test_a_file_is_dropped(page: Page, service: ServiceClient) -> None:
    page.goto(f"{service.url}/submit")
    place = page.get_by_role("textbox", name="Module")
    dropped = page.evaluate_handle(
        """(text) => {
            const data = new DataTransfer();
            data.items.add(new File([text], "dropped.json", { type: "application/json" }));
            return data;
        }""",
        '{"root": 1}',
    )
    place.dispatch_event("drop", {"dataTransfer": dropped})
    expect(place).to_have_value('{"root": 1}')
    expect(page.get_by_role("radio", name="TVM's JSON")).to_be_checked()
    expect(page.get_by_label("Name")).to_have_value("dropped")


@pytest.mark.whole
def test_what_cannot_be_sent_is_said(page: Page, watched: Watched, service: ServiceClient) -> None:
    watched.expected.append("422 (Unprocessable")
    page.goto(f"{service.url}/submit")
    page.get_by_role("button", name="Submit job").click()
    expect(page.get_by_text("Paste a module, or drop a file.")).to_be_visible()
    page.get_by_role("textbox", name="Module").fill("# a comment\nimport os\n")
    for button in ("Preview", "Submit job"):
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("alert").filter(has_text=re.compile("line 2.*import"))).to_be_visible()
        marked = page.get_by_role("figure", name="Line 2 of the module")
        expect(marked.locator("[aria-current]")).to_have_text(re.compile("2import os"))
    expect(page).to_have_url(f"{service.url}/submit")


@pytest.mark.whole
def test_a_model_of_pytorch_or_onnx_is_told_what_to_run(page: Page, service: ServiceClient, tmp_path: Path) -> None:
    file = tmp_path / "my net.onnx"
    file.write_bytes(bytes(range(256)))
    page.goto(f"{service.url}/submit")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(file)
    expect(page.get_by_text("loopwright job submit 'my net.onnx' --wait")).to_be_visible()
    expect(page.get_by_role("textbox", name="Module")).to_have_value("")
    page.get_by_label("Trials").fill("200")
    page.get_by_label("Tags").fill("nightly, big")
    expect(page.get_by_text("'my net.onnx' --max-trials 200 --tag nightly --tag big --wait")).to_be_visible()


@pytest.mark.whole
def test_what_the_command_line_can_by_keyboard(page: Page, service: ServiceClient, tmp_path: Path) -> None:
    page.goto(f"{service.url}/submit")
    page.get_by_role("textbox", name="Module").fill(product_relu(74))
    page.get_by_label("Trials").fill("4")
    more = page.locator("summary", has_text="More options")
    more.focus()
    page.keyboard.press("Enter")
    assert in_both_schemes(page) == []
    page.get_by_label("Labels").fill("rack")
    page.get_by_label("Other targets").fill("llvm -mcpu=x86-64-v2\n{")
    page.get_by_role("button", name="Submit job").click()
    for problem in ("Write each label once as key=value", "must be the JSON of a target"):
        expect(page.get_by_text(problem)).to_be_visible()
    page.get_by_label("Labels").fill("")
    page.get_by_label("Other targets").fill(
        '{"kind": "llvm", "mcpu": "x86-64-v2"}\n{"kind": "llvm", "mcpu": "x86-64-v3"}'
    )
    page.get_by_label("Description").fill("two levels of x86")
    page.get_by_label("Maximum device seconds").fill("30")
    page.get_by_label("Target latency").fill("1")
    space = tmp_path / "space.json"
    space.write_text('{"traces": []}')
    for _ in range(2):
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Choose a design space").click()
        chooser.value.set_files(space)
        space = tmp_path / "other.json"
        space.write_text("[[[], []]]")
    expect(page.get_by_text("other.json, 1 trace")).to_be_visible()
    expect(page.get_by_text("is no JSON file with a list of traces")).to_have_count(0)
    page.get_by_role("button", name="Use the built-in design space").click()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("the first of 2 targets")).to_be_visible()
    page.get_by_role("button", name="Submit job").click()
    expect(page.get_by_text("two levels of x86")).to_be_visible()
    expect(page.get_by_role("region", name="Targets")).to_contain_text("x86-64-v3")
    job = service.finished(page.url.rsplit("/", 1)[1])
    assert (job["budget"]["max_device_seconds"], job["budget"]["target_latency_us"]) == (30, 1)
    [other] = [each for each in service.items("/jobs", group=job["group"]) if each["id"] != job["id"]]
    assert service.finished(other["id"])["target"]["mcpu"] == "x86-64-v3"
