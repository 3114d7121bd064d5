"""Each fact of a job has one value, on the page, in lists, on the command line, in the SDK and over REST."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from loopwright import Client, schemas
from loopwright.cli import main
from loopwright.codegen.kinds import FailureKind, Stage
from loopwright.results import tables
from loopwright.results.units import latency, ratio
from tests.browser.conftest import TIMES
from tests.support.perceptron import PERCEPTRON
from tests.support.played_service import PlayedService
from tests.support.programs import SYMBOLIC, product_relu
from tuner.types import Failure, LibraryTime

NOISY = (0.7, 0.9, 1.0, 1.2, 1.6, 1.1, 0.95)
"""Rounds of a race of which the interval of the speedup bears one digit."""
_GAP = re.compile(r"\s{2,}")


class Facts:
    """What each surface says of each fact, as people read it."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)

    def tell(self, surface: str, job: str, fact: str, value: str) -> None:
        text = value.replace("\N{NO-BREAK SPACE}", " ").replace(TIMES, "x").replace("\N{EN DASH}", "-")
        self._told[job, fact][surface] = text.strip()

    def tell_job(self, surface: str, job: schemas.Job) -> None:
        """Tell all of a job that came over the wire, with the words of the client."""
        self.tell(surface, job.id, "state", job.state)
        self.tell(surface, job.id, "trials", f"{job.progress.trials} of {job.progress.total}")
        self.tell_model(surface, job)
        for task in job.tasks:
            row = dict(zip(("baseline", "best", "speedup"), tables.TASKS.row(task)[3:6], strict=True))
            for fact, value in row.items():
                self.tell(surface, job.id, f"{fact} of {task.workload_hash[:12]}", value)

    def tell_model(self, surface: str, job: schemas.Job) -> None:
        model = job.model
        self.tell(surface, job.id, "speedup", tables.model_speedup(job))
        for fact, us in tables.figures(model) if model else ():
            self.tell(surface, job.id, fact, latency(us))

    @property
    def contradictions(self) -> list[str]:
        return [f"{fact} of {job}: {told}" for (job, fact), told in self._told.items() if len(set(told.values())) > 1]

    def surfaces(self, fact: str) -> set[str]:
        """Return where a fact was told, of any job."""
        return {surface for (_, name), told in self._told.items() if name == fact for surface in told}


@pytest.fixture
def jobs(service: PlayedService) -> list[dict[str, Any]]:
    """Ten jobs of all kinds, some with races so noisy that their speedup has one digit."""
    stage = service.stage
    made = [service.tuned(product_relu(41), trials=8, name="exact"), service.tuned(PERCEPTRON, trials=8, name="model")]
    stage.rounds, stage.library = NOISY, LibraryTime("oneDNN 3.6", (4e-5, 4e-5, 4e-5))
    try:
        made += [service.tuned(product_relu(n), trials=8, name=f"noisy {n}") for n in (42, 43)]
        again = product_relu(42)
        made += [service.tuned(again, trials=8, name="known"), service.tuned(again, trials=8, force=True, name="anew")]
        made.append(service.tuned(SYMBOLIC, trials=8, shapes=[{"n": 5}, {"n": 9}], name="shapes"))
        targets = ["auto", {"kind": "llvm", "mcpu": "x86-64-v2"}]
        group = service.post_job(product_relu(44), targets=targets, trials=4, name="targets").json()
        made += [service.finished(job["id"]) for job in group["jobs"]]
        stage.fault = lambda request: (
            None if request.trace_json is None else Failure(Stage.BUILD, FailureKind.COMPILE, "it does not compile")
        )
        made.append(service.finished(service.submit(product_relu(45), trials=4, name="no candidate")))
    finally:
        stage.fault, stage.rounds, stage.library = (lambda request: None), (1.0,) * 5, None
    return made


def rows(page: Page, table: str) -> list[dict[str, str]]:
    """Return the cells of a table by the titles of their columns."""
    found: list[dict[str, str]] = page.get_by_role("table", name=table, exact=True).evaluate(
        """(table) => [...table.querySelectorAll("tbody tr")].map((row) => Object.fromEntries(
               [...row.cells].map((cell) => [cell.dataset.label, cell.innerText])))"""
    )
    return found


def read_page(page: Page, service: PlayedService, facts: Facts, job: schemas.Job) -> None:
    page.goto(f"{service.url}/jobs/{job.id}?all=tasks")
    expect(page.get_by_role("region", name="Tasks")).to_be_visible()
    facts.tell("page", job.id, "state", page.get_by_role("main").locator("[data-tone]").first.inner_text())
    for row, task in zip(rows(page, "Tasks"), _by_share(job), strict=True):
        assert task.workload_hash[:12] in row["Task"]
        facts.tell("page", job.id, f"baseline of {task.workload_hash[:12]}", row["Baseline"])
        facts.tell("page", job.id, f"best of {task.workload_hash[:12]}", row["Best"].split("\n")[0])
        facts.tell("page", job.id, f"speedup of {task.workload_hash[:12]}", row["Speedup"])
        is_slower = task.library is not None and task.best_us is not None and task.best_us > 1.005 * task.library.us
        assert ("faster" in row["Best"]) == is_slower
    if job.model is None:
        return
    whole = page.get_by_role("region", name="Whole model")
    facts.tell("page", job.id, "speedup", whole.locator("dd").first.inner_text())
    whole.get_by_text("All figures of one run").click()
    named = {
        "Measured as one program",
        "Untuned, measured as one program",
        "Sum of the certified bests",
        "Sum of the fastest trials",
    }
    for row in rows(page, "All figures of one run"):
        if row["Figure"] in named or row["Figure"].startswith("Sum of the functions"):
            facts.tell("page", job.id, row["Figure"].lower(), row["One run"])
    verdict = page.get_by_role("region", name="Verdict").inner_text()
    said = re.search(rf"([\d.]+{TIMES}) faster than the program without", verdict)
    if said is not None:
        facts.tell("verdict", job.id, "speedup", said[1])


def _by_share(job: schemas.Job) -> list[schemas.Task]:
    shown, folded = tables.by_share(job.tasks)
    return [*shown, *folded]


def read_commands(monkeypatch: pytest.MonkeyPatch, facts: Facts, jobs: list[schemas.Job]) -> None:
    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["loopwright", *words])
        with contextlib.redirect_stdout(io.StringIO()) as told, pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return told.getvalue()

    for line in run("job", "list", "--limit", "500").splitlines()[1:]:
        id, _, state, trials, speedup, *_ = _GAP.split(line)
        facts.tell("job list", id, "state", state)
        facts.tell("job list", id, "trials", trials.replace("/", " of "))
        facts.tell("job list", id, "speedup", speedup)
    for info in json.loads(run("job", "list", "--limit", "500", "--json")):
        facts.tell_job("job list --json", schemas.Job.model_validate(info))
    for job in jobs:
        facts.tell_job("job show --json", schemas.Job.model_validate_json(run("job", "show", job.id, "--json")))
        lines = run("job", "show", job.id, "--all").splitlines()
        head = _GAP.split(lines[0])
        facts.tell("job show", job.id, "state", head[2])
        facts.tell("job show", job.id, "trials", head[3].removesuffix(" trials"))
        head_of_table = next(number for number, line in enumerate(lines) if line.startswith("task "))
        table = lines[head_of_table + 1 :][: len(job.tasks)]
        for line, task in zip(table, _by_share(job), strict=True):
            for fact, value in zip(("baseline", "best", "speedup"), _GAP.split(line)[3:6], strict=True):
                facts.tell("job show", job.id, f"{fact} of {task.workload_hash[:12]}", value)
        for line in lines:
            if said := re.search(r"untuned: ([\d.]+x)$", line):
                facts.tell("job show", job.id, "speedup", said[1])
            if said := re.match(r"((?:untuned, )?measured as one program|sum of [a-z ]+?) {2,}(\S.*)$", line):
                facts.tell("job show", job.id, said[1], said[2])
        for line in run("job", "events", job.id).splitlines():
            if said := re.search(r"task .*: succeeded, ([\d.]+ \S+), ([\d.]+x), certified", line):
                names = [task for task in job.tasks if f" {tables.called(task)}: " in line]
                if len(names) == 1:
                    facts.tell("job events", job.id, f"best of {names[0].workload_hash[:12]}", said[1])
                    facts.tell("job events", job.id, f"speedup of {names[0].workload_hash[:12]}", said[2])


@pytest.mark.whole
def test_each_fact_of_ten_jobs_has_one_value_everywhere(
    page: Page, service: PlayedService, jobs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    facts = Facts()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOOPWRIGHT_URL", service.url)
    monkeypatch.setenv("LOOPWRIGHT_TOKEN", service.token)
    infos = [schemas.Job.model_validate(service.job(job["id"])) for job in jobs]
    assert [job.state for job in infos] == ["succeeded"] * 9 + ["partly"]
    for job in infos:
        facts.tell_job("REST", job)
    for listed in service.items("/jobs"):
        facts.tell_job("REST, list", schemas.Job.model_validate(listed))
    with Client(service.url, service.token) as client:
        for job in infos:
            followed = client.job(job.id)
            facts.tell_job("SDK", followed.info)
            frame = followed.to_pandas()
            assert list(frame["best_us"]) == [task.best_us for task in job.tasks]
            for best in followed.bests():
                certified = {task.workload_hash: task for task in job.tasks}[best.workload_hash]
                if best.record_id == certified.record_id:
                    hashed, shown = best.workload_hash[:12], tables.BESTS.row(best)[2:5]
                    for fact, value in zip(("baseline", "best", "speedup"), shown, strict=True):
                        facts.tell("SDK, bests", job.id, f"{fact} of {hashed}", value)
    _read_bests(service, facts, infos)
    read_commands(monkeypatch, facts, infos)
    for job in infos:
        read_page(page, service, facts, job)
    page.goto(f"{service.url}/jobs?sort=name")
    expect(page.get_by_role("table", name="Jobs", exact=True)).to_contain_text("no candidate")
    ids = page.get_by_role("table", name="Jobs", exact=True).evaluate(
        "(table) => [...table.querySelectorAll('tbody a.link')].map((link) => link.getAttribute('href'))"
    )
    for href, row in zip(ids, rows(page, "Jobs"), strict=True):
        facts.tell("jobs", href.removeprefix("/jobs/"), "state", row["State"])
        facts.tell("jobs", href.removeprefix("/jobs/"), "speedup", row["Speedup"])
    assert facts.contradictions == []
    everywhere = {"REST", "REST, list", "SDK", "job list", "job list --json", "job show", "job show --json", "page"}
    assert facts.surfaces("speedup") >= everywhere | {"jobs", "verdict"}
    assert facts.surfaces("untuned, measured as one program") >= everywhere - {"job list"}
    assert facts.surfaces("sum of the certified bests") >= everywhere - {"job list"}


def _read_bests(service: PlayedService, facts: Facts, jobs: list[schemas.Job]) -> None:
    """Read the bests' list, its file, and the certificates of the jobs' records."""
    text = service.http.get("/api/v1/best-schedules.csv").text
    listed = {row["record_id"]: row for row in csv.DictReader(io.StringIO(text))}
    for job in jobs:
        for task in job.tasks:
            if task.record_id is None:
                continue
            hashed = task.workload_hash[:12]
            certificate = service.get(f"/records/{task.record_id}")["certificate"]
            interval = schemas.Range.model_validate(certificate["interval"])
            facts.tell("record", job.id, f"speedup of {hashed}", ratio(certificate["speedup"], interval))
            facts.tell("record", job.id, f"best of {hashed}", latency(certificate["best_us"]))
            if (row := listed.get(task.record_id)) is not None:
                low, _, high = row["interval"].partition(" ")
                ends = schemas.Range(value=float(row["speedup"]), low=float(low), high=float(high) if high else None)
                facts.tell("bests.csv", job.id, f"speedup of {hashed}", ratio(float(row["speedup"]), ends))
                facts.tell("bests.csv", job.id, f"best of {hashed}", latency(float(row["best_us"])))
