"""A submission for several targets: what is sent, and the group that comes back."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

import loopwright
from loopwright import JobGroup, schemas
from loopwright.errors import InvalidRequest, NotFound, WaitTimedOut
from loopwright.jobs.progress import ProgressView
from loopwright.jobs.targets import short_names
from tests.support.programs import MM_RELU
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import Answer, FakeService, job_json, page, problem

OWN = {"kind": "llvm", "mcpu": "znver4", "num-cores": 2}
PLAIN = {"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2}
GIVEN = ["auto", {"kind": "llvm", "mcpu": "x86-64-v3"}]


def jobs(*states: str) -> list[dict[str, Any]]:
    """The jobs of the group ``g1`` for `OWN` and `PLAIN`."""
    changes = ({"id": "job-1", "target": OWN}, {"id": "job-2", "target": PLAIN})
    return [job_json(state, group="g1", **change) for state, change in zip(states, changes, strict=True)]


@pytest.fixture
def group(service: FakeService, client: loopwright.Client) -> JobGroup:
    service.on("POST", "/api/v1/jobs", Answer({"id": "g1", "jobs": jobs("queued", "queued")}, 202))
    return client.submit(MM_RELU, targets=GIVEN, name="mm")


def test_targets_are_sent_and_their_jobs_come_back(service: FakeService, group: JobGroup) -> None:
    [request] = service.seen("POST", "/api/v1/jobs")
    assert (request.json()["target"], request.json()["targets"]) == ("auto", GIVEN)
    assert "idempotency-key" in request.headers
    assert (group.id, [job.id for job in group.jobs]) == ("g1", ["job-1", "job-2"])
    assert list(group) == ["auto", '{"kind": "llvm", "mcpu": "x86-64-v3"}']
    assert group["auto"].info.target == OWN
    assert group[GIVEN[1]].id == "job-2"
    with pytest.raises(KeyError, match=r"llvm.*auto"):
        group["llvm"]
    assert "auto" in group
    assert "llvm" not in group


def test_a_list_of_one_target_is_a_group(service: FakeService, client: loopwright.Client) -> None:
    service.on("POST", "/api/v1/jobs", Answer({"id": "g1", "jobs": jobs("queued", "queued")[:1]}, 202))
    assert [job.id for job in client.submit(MM_RELU, targets=["auto"]).values()] == ["job-1"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"targets": GIVEN, "target": "llvm"}, "give target or targets, not both"),
        ({"targets": []}, "targets: List should have at least 1 item"),
        ({"targets": ["llvm"] * 9}, "targets: List should have at most 8 items"),
    ],
)
def test_targets_that_cannot_be_are_not_sent(
    service: FakeService, client: loopwright.Client, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        client.submit(MM_RELU, **options)
    assert service.requests == []


def test_one_text_is_no_list_of_targets(service: FakeService, client: loopwright.Client) -> None:
    with pytest.raises(TypeError, match="targets"):
        client.submit(MM_RELU, targets="cuda")
    assert service.requests == []


def test_a_refused_target_is_an_error(service: FakeService, client: loopwright.Client) -> None:
    service.on("POST", "/api/v1/jobs", problem(422, "Target not offered", "No live worker can run code for x."))
    with pytest.raises(InvalidRequest, match="x"):
        client.submit(MM_RELU, targets=GIVEN)


def test_a_check_has_one_target(client: loopwright.Client) -> None:
    with pytest.raises(TypeError, match="targets"):
        client.check(MM_RELU, "job-1", targets=GIVEN)


def test_a_group_is_waited_for_as_a_whole(service: FakeService, group: JobGroup) -> None:
    looks = [jobs("running", "queued"), jobs("succeeded", "running"), jobs("succeeded", "failed")]
    service.on("GET", "/api/v1/jobs", [Answer(page(*look)) for look in looks])
    assert group.wait(progress=False) is group
    assert all(request.query["group"] == "g1" for request in service.seen("GET", "/api/v1/jobs"))
    assert {target: job.state for target, job in group.items()} == dict(
        zip(group, ("succeeded", "failed"), strict=True)
    )
    assert (group.finished, group.succeeded) == (True, False)


def test_a_wait_ends_with_its_time_and_names_what_goes_on(service: FakeService, group: JobGroup) -> None:
    service.on("GET", "/api/v1/jobs", page(*jobs("succeeded", "running")))
    with pytest.raises(WaitTimedOut, match=r"job-2"):
        group.wait(progress=False, timeout=0)


def test_a_group_is_cancelled_job_by_job(service: FakeService, group: JobGroup) -> None:
    for number, job in enumerate(jobs("cancelled", "cancelled"), 1):
        service.on("POST", f"/api/v1/jobs/job-{number}/cancel", job)
    assert [job.state for job in group.cancel().values()] == ["cancelled", "cancelled"]


def test_a_group_is_found_by_its_id(service: FakeService, client: loopwright.Client) -> None:
    service.on("GET", "/api/v1/jobs", page(*jobs("succeeded", "running")))
    found = client.job_group("g1")
    assert [job.id for job in found.jobs] == ["job-1", "job-2"]
    assert found[PLAIN].id == "job-2"
    service.on("GET", "/api/v1/jobs", page())
    with pytest.raises(NotFound, match="g2"):
        client.job_group("g2")


def test_short_names_tell_targets_apart() -> None:
    assert short_names([OWN, {"kind": "cuda", "arch": "sm_90"}, {"kind": "llvm"}]) == [
        "llvm znver4",
        "cuda sm_90",
        "llvm",
    ]
    without = OWN | {"mattr": ["-avx512f"]}
    assert short_names([OWN, without]) == [json.dumps(target, sort_keys=True) for target in (OWN, without)]


def test_progress_has_a_bar_for_each_target() -> None:
    text = io.StringIO()
    infos = [schemas.Job.model_validate(job) for job in jobs("running", "succeeded")]
    console = Console(file=text, force_terminal=True, width=120, color_system=None)
    with ProgressView(True, console, titles=["llvm znver4", "llvm x86-64-v3"]) as view:
        view.show(*infos)
    own, plain = (next(line for line in text.getvalue().splitlines() if name in line) for name in ("znver4", "v3"))
    assert "3/64" in own
    assert "running, 1 failed, 10.0 µs (10x)" in own
    assert "3 trials" in plain
    assert "succeeded" in plain


def test_a_group_in_notebooks_and_terminals(service: FakeService, group: JobGroup) -> None:
    service.on("GET", "/api/v1/jobs", page(*jobs("succeeded", "running")))
    html = group.refresh()._repr_html_()
    for cell in ("llvm znver4", "job-1", "certified", "3", "100 µs", "10.0 µs", "10x", "running"):
        assert f">{cell}</td>" in html
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(group)
    assert "llvm x86-64-v3" in console.export_text()
    assert repr(group) == "<JobGroup g1 'mm' llvm znver4: succeeded, llvm x86-64-v3: running>"


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "mm_relu.py"
    path.write_text(MM_RELU)
    return str(path)


def test_the_command_line_takes_several_targets(service: FakeService, run: Command, program: str) -> None:
    service.on("POST", "/api/v1/jobs", Answer({"id": "g1", "jobs": jobs("queued", "queued")}, 202))
    words = ("job", "submit", program, "--target", "auto", "--target", json.dumps(PLAIN))
    done = run(*words)
    assert service.requests[0].json()["targets"] == ["auto", json.dumps(PLAIN)]
    head, own, plain, last = done.out.splitlines()
    assert head.split() == ["target", "job", "result", "trials", "baseline", "best", "speedup"]
    assert own.split()[:4] == ["llvm", "znver4", "job-1", "queued"]
    assert plain.split()[:4] == ["llvm", "x86-64-v3", "job-2", "queued"]
    assert last == "loopwright job list --group g1 lists these jobs"
    told = json.loads(run(*words, "--json").out)
    assert (told["id"], [job["id"] for job in told["jobs"]]) == ("g1", ["job-1", "job-2"])


@pytest.mark.parametrize(("states", "status"), [(("succeeded", "succeeded"), 0), (("succeeded", "failed"), 1)])
def test_waiting_on_the_command_line_ends_with_all_targets(
    service: FakeService, run: Command, program: str, states: tuple[str, str], status: int
) -> None:
    service.on("POST", "/api/v1/jobs", Answer({"id": "g1", "jobs": jobs("queued", "queued")}, 202))
    service.on("GET", "/api/v1/jobs", page(*jobs(*states)))
    done = run("job", "submit", program, "--target", "auto", "--target", json.dumps(PLAIN), "--wait", "--json")
    assert (done.status, [job["state"] for job in json.loads(done.out)["jobs"]]) == (status, list(states))


def test_the_trials_that_a_target_deserves_are_told_once(service: FakeService, run: Command, program: str) -> None:
    known, unknown = jobs("queued", "queued")
    group = {"id": "g1", "jobs": [known, unknown | {"suggested_trials": 320}]}
    service.on("POST", "/api/v1/jobs", Answer(group, 202))
    done = run("job", "submit", program, "--target", "auto", "--target", json.dumps(PLAIN))
    assert done.err == "64 trials for 1 function: --max-trials 320 or more is suggested\n"


def test_jobs_of_a_group_are_listed_with_their_targets(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs", page(*jobs("queued", "queued"), job_json(id="job-3")))
    _, *lines = run("job", "list", "--group", "g1").out.splitlines()
    assert service.requests[0].query["group"] == "g1"
    assert [" ".join(line.split()[1:-4]) for line in lines] == [
        "mm for llvm znver4 queued",
        "mm for llvm x86-64-v3 queued",
        "mm queued",
    ]
    service.on("GET", "/api/v1/jobs/job-1", cast(Any, jobs("queued", "queued")[0]))
    assert f"for {json.dumps(OWN)}; loopwright job list --group g1 lists all" in run("job", "show", "job-1").out
