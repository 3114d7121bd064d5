"""The command line: what it prints and its exit status."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import loopwright
from loopwright import frontends
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.serialization import module_from_json, trace_to_list
from loopwright.local import parts
from loopwright.session import config
from tests.support.programs import MM_RELU
from tests.unit.client.conftest import Command, Done
from tests.unit.client.fake_service import Answer, FakeService, Request, best_json, job_json, page, problem
from tests.unit.client.known_bests import scheduled, serve

HASH = "a" * 32
LLVM = '{"kind": "llvm", "num-cores": 2}'


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "mm_relu.py"
    path.write_text(MM_RELU)
    return str(path)


def test_submit_prints_the_job(service: FakeService, run: Command, program: str) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    link = f"job job-1: {service.url}/jobs/job-1\n"
    assert run("job", "submit", program, "--max-trials", "8", "--shape", "n=4") == Done(0, "job-1\n", link)
    sent = service.requests[0].json()
    assert (sent["name"], sent["budget"]["max_trials"], sent["shapes"]) == ("mm_relu", 8, {"n": 4})
    assert json.loads(run("job", "submit", program, "--json").out)["id"] == "job-1"


def test_submit_says_how_many_trials_the_model_deserves(service: FakeService, run: Command, program: str) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(suggested_trials=320), 202))
    done = run("job", "submit", program)
    warning, link = done.err.splitlines(keepends=True)
    assert (done.out, warning) == ("job-1\n", "64 trials for 1 function: --max-trials 320 or more is suggested\n")
    assert run("job", "submit", program, "--max-trials", "320") == Done(0, "job-1\n", link)


@pytest.mark.parametrize(("words", "us"), [("120", 120.0), ("1.5ms", 1500.0), ("80 us", 80.0), ("2 µs", 2.0)])
def test_a_budget_may_say_what_is_enough(
    service: FakeService, run: Command, program: str, words: str, us: float
) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    limits = ("--until", "plateau", "--target-latency", words, "--max-device-seconds", "30")
    assert run("job", "submit", program, *limits).status == 0
    assert service.requests[-1].json()["budget"] == {
        "max_trials": 64,
        "max_seconds": None,
        "max_device_seconds": 30.0,
        "target_latency_us": us,
        "until": "plateau",
    }


@pytest.mark.parametrize(
    ("words", "shapes"),
    [
        ([], None),
        (["n=4", "m=2"], {"n": 4, "m": 2}),
        (["n=4,8"], [{"n": 4}, {"n": 8}]),
        (["n=4,8", "m=2"], [{"n": 4, "m": 2}, {"n": 8, "m": 2}]),
    ],
)
def test_symbolic_extents(
    service: FakeService, run: Command, program: str, words: list[str], shapes: list[dict[str, int]]
) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    assert run("job", "submit", program, *(part for word in words for part in ("--shape", word))).status == 0
    assert service.requests[0].json()["shapes"] == shapes


@pytest.mark.parametrize(("state", "status"), [("succeeded", 0), ("partly", 1), ("failed", 1), ("cancelled", 1)])
def test_the_exit_status_is_the_jobs(service: FakeService, run: Command, program: str, state: str, status: int) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    service.on("GET", "/api/v1/jobs/job-1", job_json(state))
    assert run("job", "wait", "job-1").status == status
    done = run("job", "submit", program, "--wait", "--json")
    assert done.status == status
    assert json.loads(done.out)["state"] == state
    assert done.err == ""


def test_who_waits_is_told_of_the_job_and_that_it_goes_on(
    service: FakeService, run: Command, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    seen = []

    def interrupted(job: loopwright.Job, **_: object) -> None:
        seen.append(job.id)
        raise KeyboardInterrupt

    monkeypatch.setattr(loopwright.Job, "wait", interrupted)
    done = run("job", "submit", program, "--wait")
    assert (done.status, done.out, seen) == (130, "", ["job-1"])
    address, advice = done.err.splitlines()[-2:]
    assert address == f"job job-1: {service.url}/jobs/job-1"
    assert advice.startswith("job job-1 goes on; 'loopwright job wait job-1' follows it, ")
    assert "job job-1 goes on" in run("job", "submit", program, "--wait", "--json").err


def test_jobs_are_found_by_name(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs", lambda request: Answer(page(*by_name(request))))
    assert json.loads(run("job", "show", "resnet", "--json").out)["id"] == "job-7"
    assert service.requests[-1].query["name"] == "resnet"
    lost = run("job", "show", "nobody")
    assert (lost.status, "/api/v1/jobs/nobody" in lost.err) == (3, True)


def by_name(request: Request) -> list[dict[str, Any]]:
    return [job_json(id="job-7", name="resnet")] if request.query["name"] == "resnet" else []


def test_a_list_is_of_states_and_names(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs", page(job_json(id="a")))
    assert run("job", "list", "--state", "queued", "--state", "failed", "--name", "n").status == 0
    assert service.requests[-1].query == {"state": "failed", "name": "n", "page_size": "200"}
    assert run("job", "list", "--state", "odd").status == 2
    assert run("job", "list", "--since", "2026-01-31T08:00").status == 0
    assert service.requests[-1].query["since"] == "2026-01-31T08:00:00+00:00"
    assert run("job", "list", "--since", "90m").status == 0
    ago = datetime.now(UTC) - datetime.fromisoformat(service.requests[-1].query["since"])
    assert timedelta(minutes=90) <= ago < timedelta(minutes=95)
    assert run("job", "list", "--since", "yesterday").status == 2


def test_a_list_has_the_form_that_is_asked_for(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs", page(job_json(id="a"), job_json(id="b")))
    done = run("job", "list", "--format", "{id} {progress[trials]} {url}")
    assert done.out.splitlines() == [f"{each} 3 {service.url}/jobs/{each}" for each in "ab"]
    for wrong in ("{nothing}", "{id", "{progress[none]}", "{0}"):
        done = run("job", "list", "--format", wrong)
        assert (done.status, done.out) == (2, "")
        assert "fields are id, name, state" in done.err


def test_ids_are_links_in_terminals(service: FakeService, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    service.on("GET", "/api/v1/jobs", page(job_json(id="a")))
    service.on("GET", "/api/v1/jobs/a", job_json(id="a"))
    assert f"{service.url}/jobs/a" not in run("job", "list").out
    assert run("job", "show", "a").err == f"job a: {service.url}/jobs/a\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    for words in (("list",), ("show", "a")):
        assert f";{service.url}/jobs/a\x1b\\a" in run("job", *words).out


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The addresses that a browser was started with: a program that BROWSER names, as on a machine without xdg-open."""
    browser, log = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {log}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # what it found for another BROWSER
    return lambda: log.read_text().splitlines()


def test_the_page_of_a_job_is_opened(
    service: FakeService, run: Command, program: str, opened: Callable[[], list[str]]
) -> None:
    group = {"id": "g", "jobs": [job_json("succeeded"), job_json("succeeded", id="job-2", target={"kind": "cuda"})]}
    service.on("POST", "/api/v1/jobs", lambda request: Answer(group if request.json()["targets"] else job_json(), 202))
    service.on("POST", "/api/v1/jobs/job-1/resubmit", Answer(job_json(), 202))
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    address = f"{service.url}/jobs/job-1"
    commands = [
        *(("job", "submit", program, *targets) for targets in ((), ("--target", "llvm", "--target", "cuda"))),
        *(("job", command, "job-1") for command in ("show", "wait", "resubmit")),
        ("tune", program, "--against", "none"),
    ]
    for words in commands:
        assert run(*words, "--web").status == 0, words
    assert opened() == [address] * len(commands)
    assert run("job", "open", "job-1").out == f"{address}\n"
    assert json.loads(run("job", "open", "job-1", "--json").out) == {"url": address}
    assert opened() == [address] * (len(commands) + 1)


def test_the_page_of_a_job_of_this_machines_service_signs_in(
    service: FakeService, run: Command, monkeypatch: pytest.MonkeyPatch, opened: Callable[[], list[str]]
) -> None:
    monkeypatch.delenv("LOOPWRIGHT_URL")
    config.service_file().parent.mkdir(parents=True)
    config.service_file().write_text(json.dumps({"url": service.url, "token_file": "none"}))
    code = {"code": "lw_1", "path": "/#code=lw_1", "expires_at": "2026-01-01T00:00:00Z"}
    service.on("POST", "/api/v1/login-codes", Answer(code, 201))
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    address = f"{service.url}/jobs/job-1#code=lw_1"
    assert run("job", "show", "job-1", "--web").status == 0
    assert run("job", "open", "job-1").out == f"{address}\n"
    assert opened() == [address] * 2


def test_lists_stop_at_the_limit(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs", page(job_json(id="a"), job_json(id="b"), token="more"))
    listed = json.loads(run("job", "list", "--limit", "2", "--json").out)
    assert [job["id"] for job in listed] == ["a", "b"]
    assert len(service.requests) == 1


def test_events_are_printed_line_by_line(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs/job-1", job_json("running"))
    stream = b'id: 1\nevent: job\ndata: {"state": "running"}\n\nid: 2\nevent: job\ndata: {"state": "failed"}\n\n'
    service.on("GET", "/api/v1/jobs/job-1/events", Answer(stream, headers={"Content-Type": "text/event-stream"}))
    done = run("job", "events", "job-1", "--json")
    assert [json.loads(line)["data"]["state"] for line in done.out.splitlines()] == ["running", "failed"]
    assert "job      failed" in run("job", "events", "job-1").out


def test_cancel(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs/job-1", job_json("running"))
    service.on("POST", "/api/v1/jobs/job-1/cancel", Answer(job_json("cancelled"), 202))
    done = run("job", "cancel", "job-1", "--json")
    assert (json.loads(done.out)["state"], done.err) == ("cancelled", "")
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    assert run("job", "cancel", "job-1").err == "job job-1 had ended before; its state is succeeded\n"


ME = {"user": "ada", "kind": "token", "scope": "read", "rights": ["read"], "expires_at": None}


def test_login_checks_and_saves(service: FakeService, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    service.on("GET", "/api/v1/me", ME)
    service.on("GET", "/api/v1/jobs", page())
    service.on("GET", "/version", {"loopwright": "1", "tvm": "2", "api": "v1"})
    done = run("login", service.url, "--token", "mine", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["url"] == service.url
    assert "mine" not in done.out
    monkeypatch.delenv("LOOPWRIGHT_TOKEN")
    run("job", "list")
    assert service.requests[-1].headers["authorization"] == "Bearer mine"


def test_a_refused_login_is_not_saved(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/me", problem(401, "Unauthorized", "wrong token"))
    assert run("login", service.url, "--token", "wrong").status == 3
    assert not config.login_file().exists()


def test_schedules_are_applied_and_built(service: FakeService, run: Command, program: str, tmp_path: Path) -> None:
    mod = frontends.to_program(MM_RELU).module
    digest = function_digest(mod["main"])
    target = {"kind": "llvm", "num-cores": 2}
    serve(service, best_json(digest, trace_to_list(scheduled(mod).trace), target=target))

    assert "T.parallel" in run("schedule", "apply", program, "--target", LLVM).out
    written = tmp_path / "applied.json"
    assert "main: tuned, 10.0x" in run("schedule", "apply", program, "--target", LLVM, "-o", str(written)).out
    assert "T.parallel" in module_from_json(written.read_text()).script()

    library = tmp_path / "mm.tar"
    done = run("schedule", "compile", program, "--target", LLVM, "-o", str(library), "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["functions"][0]["outcome"] == "tuned"
    assert library.stat().st_size > 0
    assert (
        "TVM_NUM_THREADS=2 TVM_BIND_THREADS=0"
        in run("schedule", "compile", program, "--target", LLVM, "-o", str(library)).out
    )


def test_a_job_is_resubmitted(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    service.on("POST", "/api/v1/jobs/job-1/resubmit", Answer(job_json(id="job-2"), 202))
    assert run("job", "resubmit", "job-1") == Done(0, "job-2\n", f"job job-2: {service.url}/jobs/job-2\n")
    sent = service.requests[-1]
    assert sent.headers["idempotency-key"]
    unlimited = {"max_seconds": None, "max_device_seconds": None, "target_latency_us": None, "until": None}
    assert sent.json() == {"budget": {"max_trials": 64} | unlimited, "seed": None, "force": None}
    limits = ("--max-trials", "8", "--max-seconds", "5", "--seed", "3")
    done = run("job", "resubmit", "job-1", *limits, "--force", "--json")
    assert json.loads(done.out)["id"] == "job-2"
    assert service.requests[-1].json() == {
        "budget": unlimited | {"max_trials": 8, "max_seconds": 5.0},
        "seed": 3,
        "force": True,
    }


def test_a_job_that_is_resubmitted_keeps_what_is_enough(service: FakeService, run: Command) -> None:
    budget = {"max_trials": 64, "max_seconds": None, "max_device_seconds": 9.0, "target_latency_us": 80.0}
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded", budget=budget | {"until": "plateau"}))
    service.on("POST", "/api/v1/jobs/job-1/resubmit", Answer(job_json(id="job-2"), 202))
    assert run("job", "resubmit", "job-1", "--target-latency", "70us").status == 0
    sent = service.requests[-1].json()["budget"]
    assert sent == budget | {"until": "plateau", "target_latency_us": 70.0}


def test_without_the_services_code_no_worker_starts(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "command", lambda part: None)
    shown = run("worker", "start", "--address", "head").err
    assert "the client alone" in shown
    assert "scripts/worker" in shown


def test_folders_of_records_are_imported_and_exported(service: FakeService, run: Command, tmp_path: Path) -> None:
    for name in ("database_workload.json", "database_tuning_record.json"):
        (tmp_path / name).write_text("[]\n")
    report = {"workloads": 0, "imported": 0, "duplicates": 3, "errors": ["line 1: another TVM"]}
    service.on("POST", "/api/v1/records/import", report)
    assert "line 1: another TVM" in run("record", "import", str(tmp_path)).out
    service.on("GET", "/api/v1/records/export", Answer(service.requests[-1].body))
    assert run("record", "export", str(tmp_path / "out")).status == 0
    assert (tmp_path / "out" / "database_workload.json").read_text() == "[]\n"


def test_a_best_says_where_its_model_calls_it(service: FakeService, run: Command) -> None:
    service.on("GET", f"/api/v1/workloads/{HASH}/best", best_json(HASH, None) | {"source": "layers.0.fc"})
    shown = run("schedule", "best", HASH).out.splitlines()
    assert [line.split() for line in shown[:2]] == [["workload", HASH, "(main)"], ["source", "layers.0.fc"]]


def test_records_are_searched(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/records", page())
    assert run("record", "list", "--search", "layers.0").status == 0
    assert service.requests[-1].query["q"] == "layers.0"


def test_what_is_not_known_is_null_in_json(run: Command) -> None:
    assert run("schedule", "best", "b" * 32, "--json")[:2] == (1, "null\n")
