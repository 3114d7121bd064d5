"""What the command line prints for people to read: help, tables and complaints, each as one golden file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.core import TyperGroup
from typer.main import get_command

from loopwright import Comparison, doctor
from loopwright.cli import app
from loopwright.doctor import Finding, Health
from tests.support.comparisons import comparison
from tests.support.golden import Golden
from tests.support.programs import MM_RELU
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import FakeService, best_json, job_json, page, problem

HASH = "a" * 32
LIBRARY = {"name": "A library", "us": 6.25, "run_secs": [6.25e-6]}


def commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """Yield all commands but ``worker start``, which becomes another program."""
    if words != ("worker", "start"):
        yield words
    if isinstance(command, TyperGroup):
        for part, below in command.commands.items():
            yield from commands(below, *words, part)


@pytest.fixture(autouse=True)
def _width(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")


def test_help(run: Command, golden: Golden) -> None:
    texts = []
    for words in commands(get_command(app)):
        done = run(*words, "--help")
        assert (done.status, done.err) == (0, "")
        texts.append(done.out)
    golden.check("help.txt", "".join(texts))


WRONG = [
    ("job", "nonsense"),
    ("submit", "model.py"),
    ("import", "folder"),
    ("nonsense",),
    ("--url", "127.0.0.1:8080", "job", "list"),
    ("job", "submit"),
    ("job", "submit", "no-such-file.py"),
    ("job", "submit", "no-such-file.py", "--max-trials", "0"),
    ("job", "submit", "no-such-file.py", "--until", "dawn"),
    ("job", "submit", "model.py", "--target-latency", "1 h"),
    ("job", "submit", "model.py", "--label", "rack"),
    ("job", "submit", "no-such-file.py", "--shape", "n"),
    ("job", "submit", "no-such-file.py", "--shape", "n=4,"),
    ("job", "submit", "no-such-file.py", "--shape", "n=4.."),
    ("job", "submit", "no-such-file.py", "--shape", "n=4:1:2"),
    ("job", "submit", "no-such-file.py", "--shape", "n=1..9", "--shape", "m=1,2"),
    ("schedule", "apply", "model.py", "--shape", "n=1..9"),
    ("schedule", "compile", "model.py", "-o", "x.so", "--shape", "n=1,9"),
    ("schedule", "apply", "model.py", "--shape", "n=4,8"),
    ("schedule", "compile", "no-such-file.py"),
    ("record", "import", "no-such-directory"),
]


def test_wrong_use_has_status_2_sends_nothing_and_says_what_to_write(
    service: FakeService, run: Command, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MM_RELU)
    texts = []
    for words in WRONG:
        done = run(*words)
        assert (done.status, done.out) == (2, ""), words
        texts += [f"$ loopwright {' '.join(words)}", done.err]
    assert service.requests == []
    golden.check("wrong-use.txt", "\n".join(texts))


def test_a_refusal_and_a_service_that_is_not_there_have_status_3(
    service: FakeService, run: Command, golden: Golden
) -> None:
    texts = []
    service.on("GET", "/api/v1/jobs", page())
    for status in (401, 404, 422, 500):
        service.on("GET", "/api/v1/jobs/job-1", problem(status, "No", "because"))
        done = run("job", "show", "job-1")
        assert done.status == 3
        texts.append(done.err)
    service.close()
    done = run("worker", "list")
    assert done.status == 3
    texts.append(done.err.replace(service.url, "http://127.0.0.1:8080"))
    golden.check("refusals.txt", "".join(texts))


def certificates() -> Iterator[dict[str, Any]]:
    """Bests whose certificates say more, one after another."""
    rejected = {
        "candidate": "c" * 32,
        "record_id": "record-2",
        "stage": "certify",
        "kind": "WRONG_RESULT",
        "message": "argument 2 differs by up to 0.5",
    }
    state = {"sm_mhz": 1980, "memory_mhz": 2619, "celsius": 61, "watts": 412, "throttled": ["power_cap"]}
    yield best_json(HASH, None)
    for more in (
        {"sandbox": "landlock"},
        {"device_state": state},
        {"device_state": state | {"throttled": []}},
        {"device_state": {"celsius": 61, "throttled": None}},
        {"rejected": [rejected, rejected | {"record_id": None}]},
        *({"library": LIBRARY | {"us": us}} for us in (6.25, 10.04, 25.0)),
    ):
        yield best_json(HASH, [], certificate=best_json(HASH, [])["certificate"] | more)
    yield best_json(HASH, [], math="tf32")


WORKER = {
    "id": "w",
    "host": "box",
    "device": "cpu",
    "target": {"kind": "llvm"},
    "device_class": "class-1",
    "threads": 2,
    "builders": 1,
    "alive": True,
    "sandbox": "none",
    "last_seen_at": "2026-01-01T00:00:00Z",
    "device_model": "GenuineIntel",
    "builders_busy": 1,
    "slot": {"trial_id": None, "job_id": None, "since": "2026-01-01T00:00:00Z"},
    "slot_use": 0.5,
    "drift": None,
    "quarantine": None,
    "drain": None,
    "labels": {"rack": "a"},
}
RECORD = {
    "id": "record-1",
    "workload_hash": HASH,
    "name": "mm",
    "target": {"kind": "llvm"},
    "device_class": "class-1",
    "median_us": 12.5,
    "certified": True,
    "is_baseline": False,
    "job_id": None,
    "created_at": "2026-01-01T00:00:00Z",
}


def test_tables(service: FakeService, run: Command, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def printed(*words: str, status: int = 0) -> None:
        done = run(*words)
        link = f"job {words[2]}: {service.url}/jobs/{words[2]}\n" if words[:2] == ("job", "show") else ""
        assert (done.status, done.err) == (status, link), words
        texts.extend([f"$ loopwright {' '.join(words)}", done.out])

    job = job_json("succeeded", notes=["[bold] is no markup"])
    for us in (None, 6.25, 9.96, 25.0):
        job["tasks"][0]["library"] = None if us is None else LIBRARY | {"us": us}
        service.on("GET", "/api/v1/jobs/job-1", job)
        printed("job", "show", "job-1")
    service.on("GET", "/api/v1/jobs", page(job_json()))
    printed("job", "list")
    for best in certificates():
        service.on("GET", f"/api/v1/workloads/{HASH}/best", best)
        printed("schedule", "best", HASH)
    printed("schedule", "best", "b" * 32, status=1)
    service.on("GET", "/api/v1/records", page(RECORD))
    printed("record", "list", "--workload", HASH, "--target", "auto")
    assert service.requests[-1].query["target"] == "auto"
    # An earlier version of the service does not say which sandbox there is.
    service.on("GET", "/api/v1/workers", page(WORKER, WORKER | {"id": "v", "sandbox": "landlock"}))
    printed("worker", "list")
    for verb, state in (("drain", "draining"), ("undrain", "drained")):
        drain = {"since": None, "leaving": True, "state": state}
        service.on("POST", f"/api/v1/workers/box/cpu/{verb}", WORKER | {"drain": drain})
        printed("worker", verb, "box/cpu")
    found = [
        Finding(subject="one", health=Health.OK, found="well"),
        Finding(subject="two", health=Health.WARNING, found="slow", advice="hurry"),
    ]
    monkeypatch.setattr(doctor, "of_this_python", lambda: found)
    monkeypatch.setattr(doctor, "of_the_checkout", lambda options: [])
    printed("doctor", "--offline")
    console = Console(width=110, force_terminal=False)
    with console.capture() as captured:
        console.print(Comparison.model_validate(comparison()))
    golden.check("tables.txt", "\n".join([*texts, captured.get()]))
