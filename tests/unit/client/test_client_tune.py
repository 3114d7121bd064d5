"""``loopwright tune``: which service it takes, what it says at once, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopwright import schemas
from loopwright.cli import scripts, tune
from loopwright.local.state import LocalState
from loopwright.results.comparison import Comparison
from loopwright.session import config
from tests.support.programs import MM_RELU
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import Answer, FakeService, job_json
from tests.unit.client.known_bests import serve

SCRIPT = """
from dataclasses import dataclass

from beside import numbers

@dataclass
class Net:
    width: int

model, example_inputs = Net(numbers[0]), (1, 2)

def made():
    return Net(7)

def broken():
    raise KeyError("a name of the user's")
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "mm_relu.py"
    path.write_text(MM_RELU)
    return str(path)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "beside.py").write_text("numbers = [3]\n")
    path = tmp_path / "users_net.py"
    path.write_text(SCRIPT)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    return path


@pytest.mark.parametrize(("state", "status"), [("succeeded", 0), ("partly", 1), ("failed", 1)])
def test_the_link_comes_first_and_the_status_is_the_jobs(
    service: FakeService, run: Command, program: str, state: str, status: int
) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    service.on("GET", "/api/v1/jobs/job-1", job_json(state))
    done = run("tune", program, "--against", "none", "--max-seconds", "7")
    assert done.status == status
    assert done.err.splitlines()[0] == f"job job-1: {service.url}/jobs/job-1"
    assert done.out.startswith(f"job-1  mm  {state}")
    sent = service.requests[0].json()
    assert (sent["name"], sent["budget"]["max_seconds"], sent["budget"]["until"]) == ("mm_relu", 7, "plateau")
    assert sent["seconds_per_function"] is None, "the user's limit is kept"
    before = len(service.requests)
    quiet = run("tune", program, "--against", "none", "--json")
    sent = service.requests[before].json()
    assert (sent["budget"]["max_seconds"], sent["seconds_per_function"]) == (45, 2)
    assert (json.loads(quiet.out)["job"]["state"], json.loads(quiet.out)["comparison"], quiet.err) == (state, None, "")


def test_a_function_by_itself_is_tuned_and_not_compared(service: FakeService, run: Command, program: str) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    serve(service)
    done = run("tune", program)
    assert done.status == 0
    assert "not compared: a comparison calls the Relax function main" in done.err
    assert run("tune", program, "--against", "tvm").status == 2
    before = len(service.requests)
    done = run("tune", program, "--against", "trch")
    assert (done.status, len(service.requests)) == (2, before)
    assert "no engine is called trch" in done.err


def test_the_service_of_this_machine_is_started_and_its_page_signs_in(
    service: FakeService, run: Command, program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LOOPWRIGHT_URL")
    started = []

    def start(folder: Path, **_: object) -> LocalState:
        started.append(folder)
        config.service_file().parent.mkdir(parents=True)
        config.service_file().write_text(json.dumps({"url": service.url, "token_file": "none"}))
        return LocalState(1, service.url, True)

    monkeypatch.setattr(tune, "start_in", start)
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    code = {"code": "lw_1", "path": "/#code=lw_1", "expires_at": "2026-01-01T00:00:00Z"}
    service.on("POST", "/api/v1/login-codes", Answer(code, 201))
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    service.on("GET", "/healthz", {})
    address = f"{service.url}/jobs/job-1#code=lw_1"
    assert run("tune", program, "--against", "none").err.splitlines()[0] == f"job job-1: {address}"
    assert run("tune", program, "--against", "none", "--web").status == 0
    assert (started, opened) == ([config.data_folder()], [address])


def test_a_model_is_taken_from_a_script_of_the_users(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = scripts.model_named(script, "model")
    assert (named.model.width, named.example_inputs) == (3, (1, 2))
    assert scripts.model_named(script, "made").model.width == 7
    with pytest.raises(ValueError, match=r"users_net.py defines no 'net', but dataclass, numbers, Net, model, "):
        scripts.model_named(script, "net")
    with pytest.raises(FileNotFoundError):
        scripts.model_named(script.with_name("none.py"), "model")
    with pytest.raises(Exception, match="2"):
        scripts.model_named(script, "broken")
    assert "a name of the user's" in capsys.readouterr().err


def test_options_of_the_command_line_go_before_those_of_the_script(
    script: Path, run: Command, service: FakeService
) -> None:
    script.write_text(f"import loopwright\nmodel = loopwright.Model({MM_RELU!r}, shapes={{'n': 4}}, exact_math=True)\n")
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    assert run("job", "submit", f"{script}:model").status == 0
    sent = service.requests[-1].json()
    assert (sent["name"], sent["shapes"], sent["exact_math"]) == ("users_net", {"n": 4}, True)
    assert run("job", "submit", f"{script}:model", "--shape", "n=8").status == 0
    assert service.requests[-1].json()["shapes"] == {"n": 8}


def engine(name: str, us: float | None, ratio: tuple[float, float, float] | None = None) -> schemas.ComparedEngine:
    return schemas.ComparedEngine(
        name=name,
        title=name.upper(),
        versions={},
        setting=None,
        note="",
        us=us,
        run_secs=[],
        ratio=None if ratio is None else schemas.Interval(value=ratio[0], low=ratio[1], high=ratio[2]),
        error=None,
        compile_seconds=None,
        peak_mb=None,
        failure=None if us else "missing",
        install=None,
    )


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        (
            [("a", 30.0, (3.0, 2.5, 3.5)), ("b", 20.0, (2.0, 1.9, 2.1))],
            "tuned, the model takes 10.0 µs; B takes 2.0x as long (1.9x to 2.1x)",
        ),
        (
            [("a", 5.0, (0.5, 0.4, 0.6)), ("b", 20.0, (2.0, 1.9, 2.1))],
            "A is faster: the tuned model takes 10.0 µs",
        ),
        (
            [("a", 10.1, (1.01, 0.9, 1.1))],
            "no difference from A can be shown: it takes 1.0x as long",
        ),
        ([("a", None, None)], "nothing could be compared"),
    ],
)
def test_the_verdict_is_about_the_fastest_of_the_others(
    others: list[tuple[str, float | None, tuple[float, float, float] | None]], verdict: str
) -> None:
    engines = [engine("loopwright", 10.0), *(engine(*each) for each in others)]
    comparison = Comparison(
        machine="m", threads=2, precision="f32", tolerance=1e-3, reference="PyTorch", engines=engines
    )
    assert comparison.verdict.startswith(verdict)


def test_what_a_user_runs_today_is_of_the_models_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    from loopwright.comparing import compare

    assert compare.used_today(Path("net.pt2")) == ["torch", "compile"]
    assert compare.used_today("net.onnx") == ["ort", "openvino"]
    assert compare.used_today("net.py") == ["tvm"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxruntime" else name)
    assert compare.used_today("net.onnx") == ["openvino"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert compare.used_today("net.onnx") == ["tvm"]
