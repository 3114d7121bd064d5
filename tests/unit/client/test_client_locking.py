"""Lock files: models are compiled with exactly what they pin, without a service, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tvm
from tvm.s_tir import Schedule

from loopwright import Client, Lock, NotLocked, WrongCertificate
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.serialization import trace_to_list
from loopwright.codegen.target import canonical_target, target_from
from tests.support.evidence import rechecked
from tests.support.programs import MM_RELU, OTHER_BLOCKS
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import FakeService, best_json
from tests.unit.client.known_bests import HASH, LLVM, layers, serve, two_layers
from tests.unit.client.test_client_compile import run_mm

TARGET = json.loads(canonical_target(target_from(LLVM)))
"""As a service stores it."""
ROWS = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Rows:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32")):
        with R.dataflow():
            y = R.nn.relu(x)
            R.output(y)
        return y
"""
"""A model with a symbolic extent."""
NOBODY = "http://127.0.0.1:1"
"""Where no service listens."""


@pytest.fixture
def best(service: FakeService, mod: tvm.IRModule, tuned: Schedule) -> dict[str, Any]:
    """The best of MM_RELU, which the service knows."""
    known = best_json(HASH, trace_to_list(tuned.trace), target=TARGET)
    serve(service, known, auto=LLVM)
    return known


@pytest.fixture
def file(best: dict[str, Any], client: Client, tmp_path: Path) -> Path:
    path = tmp_path / "loopwright.lock"
    client.lock(MM_RELU).write(path)
    return path


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "mm_relu.py"
    path.write_text(MM_RELU)
    return str(path)


def test_a_model_is_compiled_with_the_lock_and_without_a_service(file: Path, tuned: Schedule) -> None:
    with Client(NOBODY) as alone:
        run_mm(alone.compile(MM_RELU, lock=file), "main")
        assert alone.last_report is not None
        [function] = alone.last_report.functions
        assert (function.outcome, function.best and function.best.trace) == ("tuned", trace_to_list(tuned.trace))
        run_mm(alone.compile(MM_RELU, LLVM, lock=Lock.read(file)), "main")


def test_the_lock_is_used_whatever_the_service_knows_by_now(
    file: Path, service: FakeService, client: Client, tuned: Schedule
) -> None:
    serve(service, best_json(HASH, None, target=TARGET, record_id="newer"))
    service.requests.clear()
    client.compile(MM_RELU, lock=file)
    assert not service.requests
    assert client.last_report is not None
    assert [each.outcome for each in client.last_report.functions] == ["tuned"]


def test_a_function_that_is_not_in_the_lock_is_an_error(file: Path, client: Client) -> None:
    with pytest.raises(NotLocked, match="no best of mm_relu"):
        client.compile(OTHER_BLOCKS, lock=file)
    with pytest.raises(NotLocked, match=r"no best of (\w+), (\w+), (\w+)"):
        client.compile(layers(3), lock=file)


def test_a_function_without_a_best_is_locked_only_as_unscheduled(service: FakeService, client: Client) -> None:
    lowered = lower(two_layers(), tvm.target.Target(LLVM))
    first, second = sorted((str(var.name_hint), function_digest(func)) for var, func in prim_funcs(lowered))
    serve(service, best_json(first[1], None, target=TARGET), auto=LLVM)
    with pytest.raises(NotLocked, match=f"known for {second[0]};"):
        client.lock(two_layers())
    lock = client.lock(two_layers(), allow_unscheduled=True)
    assert [(each.workload_hash, each.best is None) for each in lock.functions] == [
        (first[1], False),
        (second[1], True),
    ]
    client.compile(two_layers(), lock=lock)
    assert client.last_report is not None
    assert [each.outcome for each in client.last_report.functions] == ["baseline", "missed"]


def test_several_models_are_pinned_in_one_file(best: dict[str, Any], client: Client, tmp_path: Path) -> None:
    lock = client.lock(MM_RELU, layers(2), allow_unscheduled=True)
    assert len(lock.functions) == 3
    path = tmp_path / "loopwright.lock"
    lock.write(path)
    for model in (MM_RELU, layers(2)):
        client.compile(model, lock=path)
    with pytest.raises(NotLocked):
        client.compile(layers(3), lock=path)


def test_a_lock_is_text_with_a_line_for_each_function(
    best: dict[str, Any], file: Path, client: Client, tmp_path: Path
) -> None:
    client.lock(MM_RELU).write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    [line] = [line for line in file.read_text().splitlines() if HASH in line]
    assert json.loads(line)["best"]["trace"] == best["trace"]
    assert Lock.read(file) == client.lock(MM_RELU)


def test_a_lock_is_for_one_target(file: Path, client: Client) -> None:
    for compile_ in (client.compile, client.look_up):
        with pytest.raises(ValueError, match="the lock is for"):
            compile_(MM_RELU, {"kind": "llvm", "num-cores": 4}, lock=file)
    with pytest.raises(ValueError, match="one or more models"):
        client.lock()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda best: best.update(trace=[[], []]), "another schedule"),
        (lambda best: best.update(best_us=1.0), "best_us"),
        (lambda best: best["certificate"].update(signed=None), "not signed"),
        (lambda best: best["certificate"].update(speedup=99.0), "speedup"),
    ],
)
def test_what_was_changed_in_a_lock_is_seen(file: Path, client: Client, change: Any, error: str) -> None:
    fields = json.loads(file.read_text())
    change(fields["functions"][0]["best"])
    file.write_text(json.dumps(fields))
    with pytest.raises(WrongCertificate, match=error):
        client.compile(MM_RELU, lock=file)


def test_the_best_of_another_function_is_no_best_of_this_one(file: Path, client: Client) -> None:
    fields = json.loads(file.read_text())
    fields["functions"][0]["workload_hash"] = "d" * 32
    file.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="another function or target"):
        client.compile(MM_RELU, lock=file)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda fields: fields.update(format=2), "upgrade loopwright"),
        (lambda fields: fields.update(tvm="0.26"), "is for TVM 0.26"),
        (lambda fields: fields.pop("functions"), "no lock file"),
        (lambda fields: fields["keys"][0].update(id="f" * 16), "another id"),
        (lambda fields: fields["keys"].clear(), "none of no keys"),
        (lambda fields: fields["keys"][0].update(revoked_at="2026-03-01T00:00:00Z"), "revoked"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(file: Path, client: Client, change: Any, error: str) -> None:
    fields = json.loads(file.read_text())
    change(fields)
    file.write_text(json.dumps(fields))
    with pytest.raises((ValueError, WrongCertificate), match=error):
        client.compile(MM_RELU, lock=file)


@pytest.mark.parametrize("text", ["", "[]", "{", "no json", '{"format": 1}'])
def test_another_file_is_no_lock(tmp_path: Path, client: Client, text: str) -> None:
    path = tmp_path / "loopwright.lock"
    path.write_text(text)
    with pytest.raises(ValueError, match="no lock file"):
        client.compile(MM_RELU, lock=path)


def test_the_command_writes_and_checks_the_lock(
    best: dict[str, Any], service: FakeService, run: Command, program: str, tmp_path: Path
) -> None:
    path = tmp_path / "project.lock"
    words = ("lock", program, "-o", str(path))
    done = run(*words, "--check")
    assert (done.status, path.exists(), "no such file" in done.out) == (1, False, True)
    assert run(*words).status == 0
    written = path.read_bytes()
    done = run(*words, "--check")
    assert (done.status, done.out) == (0, f"{path}: 1 function, current\n")
    # A recheck of the same best changes nothing that is compiled.
    serve(service, rechecked(best), auto=LLVM)
    assert run(*words).status == 0
    assert path.read_bytes() == written
    serve(service, best_json(HASH, None, target=TARGET, record_id="record-9"), auto=LLVM)
    done = run(*words, "--check", "--json")
    assert (done.status, json.loads(done.out)["changes"]) == (1, ["main: record record-1 is now record record-9"])
    assert path.read_bytes() == written
    assert run(*words).status == 0
    assert path.read_bytes() != written
    serve(service, auto=LLVM)
    done = run(*words)
    assert (done.status, "no certified best is known for main" in done.err) == (1, True)
    # A file that this version cannot read is written anew.
    path.write_text("{}")
    serve(service, best, auto=LLVM)
    assert run(*words).status == 0
    assert path.read_bytes() == written


def test_each_shape_of_a_model_is_pinned(service: FakeService, run: Command, tmp_path: Path) -> None:
    program = tmp_path / "rows.py"
    program.write_text(ROWS)
    serve(service, auto=LLVM)
    path = tmp_path / "project.lock"
    words = ("lock", str(program), "-o", str(path), "--allow-unscheduled", "--shape")
    for extents, functions in (("n=3,5", 2), ("n=1..4", 4)):
        assert run(*words, extents).status == 0
        assert len(Lock.read(path).functions) == functions
        assert run(*words, extents, "--check").status == 0
    assert run(*words, "n=3,5", "--check").status == 1


def test_functions_that_came_and_went_are_named(file: Path, client: Client) -> None:
    before = Lock.read(file)
    after = client.lock(layers(1), allow_unscheduled=True)
    [added] = after.functions
    assert before.changes(after) == [f"{added.name}: not locked", "main: no longer used"]
    assert after.changes(after) == []


def test_a_library_is_built_with_a_lock(file: Path, run: Command, service: FakeService, program: str) -> None:
    service.requests.clear()
    output = file.with_name("model.so")
    assert run("schedule", "compile", program, "-o", str(output), "--lock", str(file)).status == 0
    assert output.stat().st_size
    assert not service.requests
    other = file.with_name("other.py")
    other.write_text(OTHER_BLOCKS)
    done = run("schedule", "compile", str(other), "-o", str(output), "--lock", str(file))
    assert (done.status, "the lock has no best of mm_relu" in done.err) == (1, True)


def test_a_cache_keeps_what_a_lock_compiles(service: FakeService, client: Client, tmp_path: Path) -> None:
    model = two_layers()
    serve(service, auto=LLVM)
    lock = client.lock(model, allow_unscheduled=True)
    service.requests.clear()
    with Client(NOBODY) as alone:
        for _ in range(2):
            alone.compile(model, lock=lock, cache=tmp_path / "cache")
        assert len([each for each in (tmp_path / "cache").iterdir() if each.name != ".digests"]) == 1
        empty = Lock(lock.target, (), lock.keys)
        with pytest.raises(NotLocked):
            alone.compile(model, lock=empty, cache=tmp_path / "cache")
    assert not service.requests
