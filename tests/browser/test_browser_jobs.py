"""Jobs in the dashboard: watched as they run, looked into when they are done, cancelled, submitted again."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from db import Database
from tests.browser.conftest import TIMES, Watched, row, sign_in
from tests.support import played_fleet
from tests.support.api_alone import ApiAlone
from tests.support.certificates import claim
from tests.support.comparisons import comparison
from tests.support.played_service import PlayedService
from tests.support.programs import LIBRARY_ONLY, MM_RELU, product_relu
from tests.support.service_client import ServiceClient


def cancel(page: Page) -> None:
    page.get_by_role("main").get_by_role("button", name="Cancel job").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()


def test_lists_are_live(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_text("1 worker ready")).to_be_visible()
    page.evaluate("window.notReloaded = true")
    service.submit(product_relu(24), name="newcomer", trials=4)
    newcomer = row(page, "Jobs", "newcomer")
    expect(newcomer).to_contain_text("succeeded")
    expect(newcomer).to_contain_text("4 of 4")
    expect(newcomer).to_contain_text(re.compile(rf"\d{TIMES}"))
    assert page.evaluate("window.notReloaded")


@pytest.mark.whole
def test_a_job_with_nothing_to_tune_says_so(page: Page, service: ServiceClient) -> None:
    made = service.submit(LIBRARY_ONLY, name="a library alone", trials=4)
    page.goto(f"{service.url}/jobs/{made}")
    expect(page.get_by_role("main")).to_contain_text("succeeded")
    expect(page.get_by_role("region", name="Tasks")).to_contain_text("Nothing to tune")
    expect(page.get_by_text("tests.double is called as it is")).to_be_visible()


@pytest.mark.whole
def test_a_best_that_does_not_hold_is_marked(page: Page, service: ServiceClient) -> None:
    tuned = service.tuned(product_relu(120), trials=8, name="claims too much")
    [task] = tuned["tasks"]
    claim(service, task["workload_hash"], 1e-3)
    answer = service.http.post("/api/v1/rechecks", json={"workloads": [task["workload_hash"]]})
    page.goto(f"{service.url}/jobs/{answer.json()['id']}")
    bests = page.get_by_role("region", name="Bests raced again")
    expect(bests).to_contain_text("regression")
    expect(bests).to_contain_text("a user asked")
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_text("was raced again: regression")).to_be_visible()
    bests.get_by_role("link", name=task["name"]).click()
    expect(page.get_by_text("This certificate no longer holds")).to_be_visible()
    page.goto(f"{service.url}/bests?q={task['workload_hash']}")
    best = row(page, "Best schedules", task["name"])
    expect(best).to_contain_text("no longer holds")
    service.tuned(product_relu(120), trials=8, name="searched anew")
    page.reload()
    expect(best).to_contain_text("certified")


@pytest.mark.whole
def test_the_list_of_jobs_is_narrowed_by_its_address(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    service.tuned(MM_RELU, trials=8, name="among many")  # answered from the database
    page.goto(f"{service.url}/jobs")
    expect(row(page, "Jobs", "among many")).to_be_visible()
    page.get_by_label("State").select_option("failed")
    expect(page.get_by_text("No job is in the state failed.")).to_be_visible()
    expect(page).to_have_url(f"{service.url}/jobs?state=failed")
    page.go_back()
    expect(row(page, "Jobs", "among many")).to_be_visible()
    page.goto(f"{service.url}/jobs?state=succeeded")
    expect(row(page, "Jobs", "among many")).to_be_visible()
    page.goto(f"{service.url}/jobs?days=1")
    page.get_by_label("Search").fill("AMONG")
    expect(page).to_have_url(f"{service.url}/jobs?days=1&q=AMONG")
    expect(row(page, "Jobs", "among many")).to_be_visible()
    page.get_by_label("Owner").fill("nobody")
    expect(page.get_by_text("No job matches.")).to_be_visible()
    page.get_by_role("button", name="Clear the owner").click()
    expect(row(page, "Jobs", "among many")).to_be_visible()


@pytest.mark.whole
def test_the_overview_counts(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    service.tuned(MM_RELU, trials=8, name="the newest")  # answered from the database
    page.goto(service.url)
    figures = page.get_by_role("region", name="Figures")
    overview = service.get("/overview")
    assert overview["bests"] > 0
    expect(figures).to_contain_text("1 of 1")
    expect(figures).to_contain_text(f"of {overview['workloads']} workload")
    expect(row(page, "Jobs", "the newest")).to_be_visible()
    gains = [best["baseline_us"] - best["best_us"] for best in overview["recent_bests"]]
    assert gains == sorted(gains, reverse=True)
    newest = overview["recent_bests"][0]
    # A workload may have bests on several device classes.
    best = row(page, "Recent bests", newest["workload_hash"][:12]).first
    gain = "baseline" if newest["is_baseline"] else TIMES
    for text in (newest["name"], newest["op"], "llvm", re.compile(r"\d\s(ns|µs|ms)"), gain, "certified"):
        expect(best).to_contain_text(text)


def test_what_the_job_did(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.goto(f"{service.url}/jobs/{job['id']}")
    [task] = job["tasks"]
    line = row(page, "Tasks", task["workload_hash"][:12])
    facts = ("main", task["source"], "succeeded", "certified", "search", "µs", TIMES, "100%")
    for text in (*facts, f"{task['trials']} trials"):
        expect(line).to_contain_text(text)
    verdict = page.get_by_role("region", name="Verdict")
    for text in ("Done", "One call takes", "faster than the program without a schedule", "in measuring slots"):
        expect(verdict).to_contain_text(text)
    bottlenecks = page.get_by_role("region", name="Bottlenecks")
    for text in ("limits it, and it reaches", "are above what the device's peaks allow", "Measure each decision"):
        expect(bottlenecks).to_contain_text(text)
    expect(page.get_by_role("img", name=re.compile(r"Timeline of .*build .*measure"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"Total time over all workers: propose .*, build .*, measure"))).to_be_visible()
    page.get_by_role("tab", name="Events").click()
    expect(page).to_have_url(f"{service.url}/jobs/{job['id']}?tab=events")
    events = page.get_by_role("list", name="Events, the newest first")
    expect(events).to_contain_text(re.compile(r"Task main:\d+ has succeeded"))
    page.get_by_role("switch", name="Show every trial").click()
    expect(events).to_contain_text(re.compile(r"Trial #\d+ of main:\d+ took"))
    page.get_by_role("tab", name="Coverage").click()
    expect(page.get_by_text(re.compile(r"24 trials of this job: 24 random"))).to_be_visible()
    tried = row(page, "Coverage", "Y: tile i[0]")
    expect(tried).to_contain_text(re.compile(r"[1-7] of 7"))
    page.get_by_role("tab", name="Calibration").click()
    calibration = page.get_by_role("img", name=re.compile(r"selected 24 measured trials; rank correlation 1\.00"))
    expect(calibration).to_be_visible()
    expect(page.get_by_role("tabpanel")).to_contain_text("No starting point of a rule was measured")
    page.get_by_role("tab", name="Failures").click()
    expect(page).to_have_url(re.compile("tab=failures"))
    page.get_by_role("tabpanel").get_by_text(re.compile("No trial has failed|at (build|measure)")).first.wait_for()


@pytest.mark.whole
def test_two_jobs_side_by_side(page: Page, service: ServiceClient) -> None:
    one, other = (service.tuned(product_relu(61), trials=n, name=f"budget {n}", force=True) for n in (4, 8))
    page.goto(f"{service.url}/jobs/{one['id']}")
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page).to_have_url(f"{service.url}/jobs/compare?a={one['id']}")
    page.get_by_role("combobox", name="Right").select_option(other["id"])
    expect(page).to_have_url(f"{service.url}/jobs/compare?a={one['id']}&b={other['id']}")
    expect(page.get_by_role("row", name="Trials 4 8", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("The same in both: .*seed \\(0\\)"))).to_be_visible()
    expect(row(page, "Functions", "main:")).to_contain_text(re.compile(rf"\d{TIMES}"))
    page.get_by_role("button", name="Swap sides").click()
    expect(page).to_have_url(f"{service.url}/jobs/compare?a={other['id']}&b={one['id']}")
    expect(page.get_by_role("row", name="Trials 8 4", exact=True)).to_be_visible()


@pytest.mark.whole
def test_a_job_is_described_and_found_by_its_tag(page: Page, service: ServiceClient) -> None:
    made = service.tuned(product_relu(63), trials=4, name="described")
    page.goto(f"{service.url}/jobs/{made['id']}")
    page.get_by_role("button", name="Describe").click()
    form = page.get_by_role("dialog", name="Describe")
    form.get_by_label("Tags").fill("weekly, with bias,,weekly")
    form.get_by_label("Description").fill("After the change\nof the layout")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("After the change\nof the layout")).to_be_visible()
    page.get_by_role("link", name="Jobs tagged with bias").click()
    expect(page).to_have_url(f"{service.url}/jobs?tag=with%20bias")
    expect(page.get_by_role("table", name="Jobs", exact=True).locator("tbody").get_by_role("row")).to_have_count(1)
    page.get_by_role("textbox", name="Tag").fill("with")
    expect(page.get_by_text("No job matches.")).to_be_visible()
    found = service.get("/jobs", tag="weekly")["items"]
    assert [(job["id"], job["tags"]) for job in found] == [(made["id"], ["weekly", "with bias"])]


@pytest.mark.whole
def test_what_the_whole_model_gained(page: Page, service: ServiceClient, finished_model: dict[str, Any]) -> None:
    model, job_id = finished_model["model"], finished_model["id"]
    assert model["speedup"] > 1
    page.goto(f"{service.url}/jobs/{job_id}")
    whole = page.get_by_role("region", name="Whole model")
    expect(whole).to_contain_text("measured in turns with the tuned model")
    expect(page.get_by_role("img", name=re.compile(r"^(Before|After), .*%"))).to_have_count(2)
    expect(whole).to_contain_text(re.compile(rf"Speedup\d+(\.\d+)?{TIMES}"))
    expect(page.get_by_role("region", name="Compared with other engines")).to_have_count(0)
    assert service.http.put(f"/api/v1/jobs/{job_id}/comparison", json=comparison()).status_code == 200
    page.reload()
    engines = page.get_by_role("region", name="Compared with other engines")
    expect(engines).to_contain_text("measured by owner")
    expect(row(page, "Engines", "PyTorch")).to_contain_text("2.00 (1.80 to 2.20)")
    expect(row(page, "Engines", "ONNX Runtime")).to_contain_text("pip install onnxruntime")


@pytest.mark.whole
def test_its_files_are_kept(page: Page, service: ServiceClient, job: dict[str, Any], tmp_path: Path) -> None:
    page.goto(f"{service.url}/jobs/{job['id']}")

    def keep(label: str) -> Path:
        page.get_by_role("button", name="Download").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=re.compile(label)).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    module = keep("Module with the best schedules")
    assert module.name == "product-module.json"
    assert json.loads(module.read_text())["format"] == "tvm-json"
    with tarfile.open(keep("Tuning records")) as records:
        assert {Path(name).name for name in records.getnames()} >= {
            "database_workload.json",
            "database_tuning_record.json",
        }
    events = json.loads(keep("Chrome trace").read_text())["traceEvents"]
    assert {event["ph"] for event in events} >= {"X"}


def test_a_job_is_cancelled_and_submitted_again(page: Page, service: PlayedService) -> None:
    with service.stage.held(after=3):
        job_id = service.submit(product_relu(88), name="endless", trials=5_000)
        page.goto(f"{service.url}/jobs/{job_id}")
        page.get_by_role("main").get_by_role("button", name="Cancel job").click()
        page.get_by_role("button", name="Keep running").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        cancel(page)
        expect(page.get_by_text("cancelled").first).to_be_visible()
        assert service.finished(job_id)["state"] == "cancelled"

    page.get_by_role("button", name="Submit again").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Trials").fill("4")
    form.get_by_role("checkbox", name="Search even if a best is known").click()
    form.get_by_role("button", name="Submit job").click()
    expect(page).not_to_have_url(f"{service.url}/jobs/{job_id}")
    expect(page.get_by_text("4 of 4 trials")).to_be_visible()
    again = service.finished(page.url.rsplit("/", 1)[1])
    assert (again["name"], again["budget"]["max_trials"]) == ("endless", 4)


@pytest.mark.whole
def test_a_stopped_service_is_missed_and_found_again(fresh_page: Page, watched: Watched, tmp_path: Path) -> None:
    watched.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "503 (Service Unavailable)"]
    page = fresh_page
    with ApiAlone(tmp_path) as service:
        database = Database(service.database)
        played_fleet.join(database)
        sign_in(page, service)
        page.goto(f"{service.url}/jobs/{service.submit(MM_RELU, name='interrupted')}")
        expect(page.get_by_text("queued").first).to_be_visible()
        service.stop()
        expect(page.get_by_text("Connection lost, retrying")).to_be_visible()
        service.start()
        expect(page.get_by_text("Connection lost, retrying")).to_have_count(0)
        cancel(page)
        expect(page.get_by_text("cancelled").first).to_be_visible()
        database.close()


@pytest.mark.whole
def test_targets_of_a_submission_stand_side_by_side(page: Page, service: ServiceClient) -> None:
    plain = {"kind": "llvm", "mcpu": "x86-64-v2"}
    answer = service.post_job(product_relu(172), targets=["auto", plain], name="two targets", trials=4)
    own_id, plain_id = [job["id"] for job in answer.json()["jobs"]]
    page.goto(f"{service.url}/jobs/{own_id}")
    own, other = row(page, "Targets", "(this job)"), row(page, "Targets", "x86-64-v2")
    for line in (own, other):
        expect(line).to_contain_text("succeeded")
        expect(line).to_contain_text("4 of 4")
        expect(line).to_contain_text("certified")
        expect(line).to_contain_text(re.compile(rf"\d\s(ns|µs|ms).*\d{TIMES}"))
    other.get_by_role("link").click()
    expect(page).to_have_url(f"{service.url}/jobs/{plain_id}")
    expect(row(page, "Targets", "x86-64-v2 (this job)")).to_have_count(1)
    expect(row(page, "Targets", "(this job)")).to_have_count(1)
    page.get_by_role("navigation").get_by_role("link", name="Jobs", exact=True).click()
    listed = row(page, "Jobs", "two targets")
    expect(listed).to_have_count(2)
    expect(listed.filter(has_text="x86-64-v2")).to_have_count(1)


@pytest.mark.whole
def test_a_job_of_its_own_has_no_list_of_targets(page: Page, service: ServiceClient, job: dict[str, Any]) -> None:
    page.goto(f"{service.url}/jobs/{job['id']}")
    expect(page.get_by_role("region", name="Tasks")).to_be_visible()
    expect(page.get_by_role("region", name="Targets")).to_have_count(0)
