"""The command line against a real service: what users type, read and script with."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loopwright import Job
from loopwright.cli import main
from loopwright.codegen.functions import has_relax, prim_funcs
from loopwright.codegen.serialization import module_from_json
from loopwright.frontends.tvmscript import module_from_script
from loopwright.results import tables
from loopwright.results.units import latency
from tests.support.perceptron import PERCEPTRON
from tests.support.played_service import PlayedService
from tests.support.programs import MM_RELU, product_relu
from tests.support.service_client import ServiceClient

LOOPWRIGHT = str(Path(sys.executable).parent / "loopwright")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\]8;[^\x1b]*\x1b\\")
"""Moves, colours, and the ends of links."""


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """All of standard output as one JSON document."""
        return json.loads(self.out)


class Cli:
    """Runs the command as the user who runs the service, in a folder with programs."""

    def __init__(self, folder: Path, service: ServiceClient) -> None:
        self.folder = folder
        self._env = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(service.folder / "state")}

    @contextlib.contextmanager
    def _as_the_user(self, *words: str, **env: str) -> Iterator[None]:
        # A terminal has a size of its own; COLUMNS, which readline sets unseen by `os.environ`, would come before it.
        dropped = ("LOOPWRIGHT_", "XDG_", "COLUMNS", "LINES")
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(self.folder):
            for name in [name for name in os.environ if name.startswith(dropped)]:
                patch.delenv(name)
            for name, value in {**self._env, **env}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", [LOOPWRIGHT, *words])
            yield

    def __call__(self, *words: str, **env: str) -> Done:
        """Run it in this process."""
        out, err = io.StringIO(), io.StringIO()
        told = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with self._as_the_user(*words, **env), told[0], told[1], pytest.raises(SystemExit) as ended:
            main()
        return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    def in_terminal(self, columns: int, *words: str, look: Callable[[str], None] | None = None) -> tuple[int, str]:
        """Exit status, and what a terminal of that width is told, without colours; what is written over stays.

        ``look`` is called with what has been told so far.
        """
        with self._as_the_user(TERM="xterm"):
            child, terminal = pty.fork()
            if child == 0:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
                os.execve(LOOPWRIGHT, [LOOPWRIGHT, *words], dict(os.environ))
        told = b""
        while chunk := _read(terminal):
            told += chunk
            if look is not None:
                look(_CONTROL.sub("", told.decode(errors="ignore")))
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), _CONTROL.sub("", told.decode()).replace("\r", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: the command has ended
        return b""


@pytest.fixture
def cli(service: ServiceClient, tmp_path: Path) -> Cli:
    (tmp_path / "product.py").write_text(MM_RELU)
    (tmp_path / "perceptron.py").write_text(PERCEPTRON)
    return Cli(tmp_path, service)


def test_submit_and_wait_in_a_terminal(cli: Cli, service: PlayedService) -> None:
    (cli.folder / "small.py").write_text(product_relu(20))
    with contextlib.ExitStack() as held:
        held.enter_context(service.stage.held(after=3))

        def release(told: str) -> None:
            if "/4" in told:
                held.close()

        words = ("job", "submit", "small.py", "--max-trials", "4", "--wait")
        status, told = cli.in_terminal(80, *words, look=release)
    assert status == 0, told
    for word in ("small", "4 of 4 trials", "succeeded", "certified", "main"):
        assert word in told
    assert max(len(line) for line in told.splitlines()) <= 80


def test_several_targets_in_a_terminal(cli: Cli) -> None:
    (cli.folder / "small.py").write_text(product_relu(144))
    targets = ("--target", "auto", "--target", json.dumps({"kind": "llvm", "mcpu": "x86-64-v2"}))
    status, told = cli.in_terminal(80, "job", "submit", "small.py", *targets, "--max-trials", "4", "--wait")
    assert status == 0, told
    rows = [line.split() for line in told.splitlines() if line.startswith("llvm") and "certified" in line]
    assert len(rows) == 2, told
    assert rows[1][:2] == ["llvm", "x86-64-v2"]
    assert all(row[3:5] == ["certified", "4"] for row in rows)
    assert max(len(line) for line in told.splitlines()) <= 80
    [group_id] = re.findall(r"job list --group (\w+) lists", told)
    listed = cli("job", "list", "--group", group_id, "--json").json
    assert [job["id"] for job in listed] == [row[2] for row in rows]


def test_submit_then_wait(cli: Cli, product: Job) -> None:
    submitted = cli("job", "submit", "product.py", "--max-trials", "16", "--name", "again", "--seed", "3")
    assert submitted.status == 0, submitted.err
    job_id = submitted.out.strip()
    waited = cli("job", "wait", job_id, "--json")
    assert waited.status == 0
    assert waited.err == ""
    assert (waited.json["name"], waited.json["seed"], waited.json["state"]) == ("again", 3, "succeeded")
    assert "database" in cli("job", "show", job_id).out


def test_jobs_are_listed_and_shown(cli: Cli, perceptron: Job, product: Job) -> None:
    listed = cli("job", "list", "--limit", "500").out.splitlines()
    assert listed[0].split() == ["job", "name", "state", "trials", "speedup", "created", "(UTC)"]
    [line] = [line for line in listed if line.startswith(perceptron.id)]
    assert perceptron.model is not None
    assert line.split()[1:5] == ["perceptron", "succeeded", "16/16", tables.model_speedup(perceptron.info)]
    assert perceptron.id in [job["id"] for job in cli("job", "list", "--limit", "500", "--json").json]
    assert len(cli("job", "list", "--limit", "1", "--json").json) == 1
    lines = cli("job", "show", perceptron.id).out.splitlines()
    for task in perceptron.tasks:
        [row] = [line for line in lines if line.startswith(f"{task.source} {task.name} ")]
        assert re.search(r"[\d.]+ (ns|µs|ms) +[\d.]+ (ns|µs|ms) +[\d.]+x  certified  \d+ trials", row), row
    assert cli("job", "show", perceptron.id, "--json").json["id"] == perceptron.id
    figures = cli("job", "show", perceptron.id, "--all").out
    for named, us in tables.figures(perceptron.model):
        assert re.search(rf"^{named} +{re.escape(latency(us))} *$", figures, re.MULTILINE)


def test_jobs_are_described_sorted_and_compared(cli: Cli, service: PlayedService) -> None:
    one, other = (service.tuned(product_relu(66), trials=n, name=f"of {n}", force=True)["id"] for n in (4, 6))
    described = cli("job", "describe", one, "--tag", "zeta", "--tag", "alpha", "--text", "before the change")
    for line in ("tags: alpha, zeta", "before the change"):
        assert line in described.out.splitlines()
    assert cli("job", "describe", "of 4", "--untag", "zeta", "--tag", "beta", "--json").json["tags"] == [
        "alpha",
        "beta",
    ]
    assert [job["id"] for job in cli("job", "list", "--tag", "beta", "--json").json] == [one]
    found = cli("job", "list", "--search", "of ", "--sort", "name", "--since", "2020-01-31", "--json").json
    assert [job["name"] for job in found if job["name"] in ("of 4", "of 6")] == ["of 4", "of 6"]
    assert cli("job", "list", "--since", "2999-12-31", "--json").json == []
    left, right = service.job(one), service.job(other)
    [row] = cli("job", "diff", "of 4", other, "--json").json
    assert (row["left_us"], row["right_us"]) == (left["tasks"][0]["best_us"], right["tasks"][0]["best_us"])
    assert row["speedup"] == pytest.approx(row["left_us"] / row["right_us"])
    told = cli("job", "diff", one, other).out
    assert f"of 4 ({one}): {latency(left['model']['latency_us'])}, succeeded; of 6 ({other})" in told


@pytest.mark.whole
def test_tables_hold_together_in_every_terminal(cli: Cli, perceptron: Job) -> None:
    """No word but the name of a task is ever broken; where there is no room for that, lines replace rows."""
    for columns in (40, 80, 100):
        status, told = cli.in_terminal(columns, "job", "show", perceptron.id)
        assert status == 0
        words = told.split()
        assert words.count("certified") >= 2, told
        for title in ("task", "weight", "share", "baseline", "best", "speedup", "result", "found"):
            assert title in words, told
        if columns >= 100:
            assert {task.name for task in perceptron.tasks} <= set(words), told


def test_events_are_sentences(cli: Cli, product: Job) -> None:
    lines = cli("job", "events", product.id).out.splitlines()
    assert re.fullmatch(r" +\d+  job      queued", lines[0])
    assert re.fullmatch(r" +\d+  job      succeeded", lines[-1])
    assert any(re.search(r"trial    main:\d+ #0: measured, [\d.]+ (ns|µs|ms) \(baseline\)", line) for line in lines)
    assert any(re.search(r"task     main:\d+: succeeded, [\d.]+ (ns|µs), [\d.]+x, certified", line) for line in lines)
    events = [json.loads(line) for line in cli("job", "events", product.id, "--json").out.splitlines()]
    assert len(events) == len(lines)
    rest = cli("job", "events", product.id, "--after", str(events[-2]["id"])).out
    assert rest.splitlines() == lines[-1:]


def test_the_best_is_shown(cli: Cli, product: Job) -> None:
    [task] = product.tasks
    shown = cli("schedule", "best", task.workload_hash).out
    for word in (task.workload_hash, "schedule found", "certified", "largest error", "µs"):
        assert word in shown
    assert cli("schedule", "best", "product.py", "--json").json["workload_hash"] == task.workload_hash


def test_apply_prints_a_program_and_says_what_hit(cli: Cli, perceptron: Job) -> None:
    done = cli("schedule", "apply", "perceptron.py")
    assert done.status == 0
    assert "T.parallel" in done.out or "T.vectorized" in done.out
    assert sorted(line.split(":")[0] for line in done.err.splitlines()) == sorted(
        task.name for task in perceptron.tasks
    )
    # What it prints is a program that it takes.
    (cli.folder / "applied.py").write_text(done.out)
    assert prim_funcs(module_from_script(done.out))
    written = cli("schedule", "apply", "perceptron.py", "-o", "applied.json", "--json")
    assert written.json["output"] == "applied.json"
    assert {function["outcome"] for function in written.json["functions"]} <= {"tuned", "baseline"}
    assert has_relax(module_from_json((cli.folder / "applied.json").read_text()))


def test_compile_writes_a_library(cli: Cli, product: Job) -> None:
    done = cli("schedule", "compile", "product.py", "-o", "product.so")
    assert done.status == 0, done.err
    assert re.search(r"^main: tuned, [\d.]+x$", done.out, re.MULTILINE)
    assert (cli.folder / "product.so").read_bytes().startswith(b"\x7fELF")


def test_records_and_workers(cli: Cli, product: Job) -> None:
    [task] = product.tasks
    records = cli("record", "list", "--workload", task.workload_hash, "--target", "auto", "--json").json
    assert [record["median_us"] for record in records] == sorted(record["median_us"] for record in records)
    shown = cli("record", "show", str(task.record_id)).out
    for word in (str(task.record_id), product.id, "samples", "largest error", "def main"):
        assert word in shown
    assert cli("record", "show", str(task.record_id), "--json").json["run_secs"]
    # All of them: on a busy machine many trials are measured faster than the best, which the closing race chose.
    listed = cli("record", "list", "--workload", task.workload_hash, "--limit", str(task.trials + 1)).out
    assert str(task.record_id) in listed
    [worker] = cli("worker", "list", "--json").json
    assert worker["alive"]
    workers = cli("worker", "list").out
    assert f'"kind": "{worker["target"]["kind"]}"' in workers
    assert worker["sandbox"] in workers
    assert re.search(rf"^sandbox +{worker['sandbox']} *$", shown, re.MULTILINE)


def test_records_travel(cli: Cli, product: Job) -> None:
    assert cli("record", "export", "records").out == "written to records\n"
    assert (cli.folder / "records" / "database_workload.json").stat().st_size > 0
    imported = cli("record", "import", "records", "--json").json
    assert imported["errors"] == []
    assert imported["workloads"] >= 1
    again = cli("record", "import", "records")
    told = re.fullmatch(
        r"0 records imported, (\d+) known before, 0 not taken\nwith certificates: (\d+) signed by this service, .*\n",
        again.out,
    )
    assert told is not None
    assert told[1] == told[2] != "0"
    missing = cli("record", "import", ".")
    assert (missing.status, missing.out) == (2, "")
    assert "database_workload.json" in missing.err
