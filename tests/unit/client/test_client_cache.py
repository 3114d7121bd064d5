"""A cache of compiled models: what hits, what is compiled again, and what may befall its folders."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax

import loopwright
from loopwright import UnsupportedModel
from loopwright.applying import assembling
from loopwright.applying.report import Summary
from loopwright.caching import child
from loopwright.caching.entry import Entry, Stored
from loopwright.caching.file_digests import FileDigests
from loopwright.caching.keys import key
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import function_digest, normal_form
from loopwright.compile_options import CompileOptions
from loopwright.errors import Unauthorized, WrongAnswer
from loopwright.locking.lock import Lock
from loopwright.model import Model
from tests.support.programs import MM_RELU
from tests.unit.client.fake_service import Answer, FakeService, best_json
from tests.unit.client.known_bests import LLVM, RECORDS, parallel_matmul, serve, two_layers

X = np.linspace(-1, 1, 64, dtype="float32").reshape(1, 64)
W1, W2 = (np.random.default_rng(0).standard_normal(shape, dtype="float32") for shape in ((64, 32), (32, 16)))
EXPECTED = np.maximum(X @ W1, 0) @ W2


class Net(nn.Module):
    def __init__(self, bias: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(16, 4)
        nn.init.constant_(self.linear.bias, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def best(number: int) -> dict[str, Any]:
    """A best of the second layer, by the number of its record."""
    [func] = [func for var, func in prim_funcs(lowered()) if var.name_hint.startswith("matmul")]
    workload = normal_form(func)
    return best_json(function_digest(func), parallel_matmul(workload), target=LLVM, record_id=f"record-{number}")


def lowered() -> tvm.IRModule:
    with tvm.target.Target(LLVM):
        return relax.get_pipeline("zero")(two_layers())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def known(service: FakeService) -> None:
    serve(service, best(1))


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that were built, in this process."""
    monkeypatch.setattr("loopwright.caching.child.takes", lambda source, params: False)
    built, assembled = [], assembling.assembled

    def counted(model: Any, functions: Any) -> Any:
        built.append(model)
        return assembled(model, functions)

    monkeypatch.setattr("loopwright.compiler.assembled", counted)
    return built


def compiled(client: loopwright.Client, cache: Path, **options: Any) -> Any:
    return client.compile(two_layers(), params={"w1": W1, "w2": W2}, cache=cache, **options)


def entries(cache: Path) -> list[Path]:
    return [each for each in cache.iterdir() if not each.name.startswith(".")]


def check(program: Any) -> None:
    np.testing.assert_allclose(program(X), EXPECTED, rtol=1e-4, atol=1e-4)


def outcome(client: loopwright.Client) -> tuple[str, str | None]:
    """What became of the second layer's function, and with which record."""
    assert client.last_report is not None
    [found] = [each for each in client.last_report.functions if each.name == "matmul1"]
    return found.outcome, found.best.record_id if found.best else None


@pytest.mark.usefixtures("known")
def test_a_model_is_built_once(client: loopwright.Client, cache: Path, builds: list[Any]) -> None:
    first = compiled(client, cache)
    report = client.last_report
    second = compiled(client, cache)
    assert len(builds) == 1
    assert client.last_report == report
    assert outcome(client) == ("tuned", "record-1")
    for program in (first, second):
        check(program)


@pytest.mark.usefixtures("known")
def test_other_options_versions_and_weights_are_built(
    client: loopwright.Client, cache: Path, builds: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(client, cache)
    compiled(client, cache, exact_math=True)
    compiled(client, cache, verify=False)
    compiled(client, cache, target={"kind": "llvm", "num-cores": 1})
    program = client.compile(two_layers(), params={"w1": W1, "w2": 2 * W2}, cache=cache)
    np.testing.assert_allclose(program(X), 2 * EXPECTED, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr("loopwright.caching.keys.VERSION", "0.0.9")
    compiled(client, cache)
    assert len(builds) == len(entries(cache)) == 6


def test_modules_of_pytorch_are_told_apart_by_their_weights_and_inputs(
    service: FakeService, client: loopwright.Client, cache: Path, builds: list[Any]
) -> None:
    serve(service)
    x = torch.linspace(-2, 2, 48).reshape(3, 16)
    for net, inputs, count in ((Net(0.0), x, 1), (Net(0.0), x, 1), (Net(1.0), x, 2), (Net(1.0), x[:2], 3)):
        program = client.compile(net.eval(), example_inputs=(inputs,), cache=cache)
        torch.testing.assert_close(program(inputs), net(inputs).detach())
        assert len(builds) == count
    assert client.last_report is not None
    assert client.last_report.agreement is not None


def test_a_better_best_is_built(
    service: FakeService, client: loopwright.Client, cache: Path, builds: list[Any]
) -> None:
    for bests, expected in (
        ([], ("missed", None)),
        ([best(1)], ("tuned", "record-1")),
        ([best(2)], ("tuned", "record-2")),
    ):
        serve(service, *bests)
        compiled(client, cache)
        assert outcome(client) == expected
    assert len(builds) == 3
    assert len(entries(cache)) == 1


@pytest.mark.usefixtures("known")
def test_without_the_service_the_cache_is_taken(
    service: FakeService, client: loopwright.Client, cache: Path, builds: list[Any]
) -> None:
    compiled(client, cache)
    service.requests.clear()
    service.on("POST", RECORDS, Answer(hang_up=True))
    check(compiled(client, cache))
    assert len(service.requests) == 1
    assert client.last_report is not None
    assert "taken from the cache of" in client.last_report.notes[-1]
    assert outcome(client) == ("tuned", "record-1")
    assert len(builds) == 1


@pytest.mark.usefixtures("known")
def test_a_damaged_entry_is_built_again(client: loopwright.Client, cache: Path, builds: list[Any]) -> None:
    compiled(client, cache)
    [entry] = entries(cache)
    content = (entry / "model.so").read_bytes()
    (entry / "model.so").unlink()  # this process has it in memory
    (entry / "model.so").write_bytes(content[:-100])
    check(compiled(client, cache))
    assert len(builds) == 2
    assert entries(cache) == [entry]


def test_large_weights_are_read_where_their_file_is_mapped(
    service: FakeService, client: loopwright.Client, cache: Path, builds: list[Any]
) -> None:
    serve(service)
    torch.manual_seed(0)
    first, last = nn.Linear(64, 1100), nn.Linear(1100, 64)
    net, x = nn.Sequential(first, nn.ReLU(), last, first, nn.ReLU(), last).eval(), torch.linspace(-1, 1, 192)
    x = x.reshape(3, 64)

    def check_next(builds_so_far: int) -> Path:
        program = client.compile(net, example_inputs=(x,), cache=cache)
        torch.testing.assert_close(program(x), net(x).detach(), rtol=1e-4, atol=1e-5)
        assert len(builds) == builds_so_far
        [entry] = entries(cache)
        assert str(entry / "weights.bin") in Path("/proc/self/maps").read_text()
        return entry

    entry = check_next(1)
    check_next(1)
    weights = (entry / "weights.bin").read_bytes()
    assert len(weights) == 2 * 4 * 64 * 1100  # each once, however often it is read
    assert (entry / "model.so").stat().st_size < len(weights)
    (entry / "weights.bin").unlink()  # this process has it in memory
    (entry / "weights.bin").write_bytes(weights[:-1])
    assert check_next(2) == entry
    assert (entry / "weights.bin").read_bytes() == weights


def filled(content: bytes) -> Callable[[Path], Stored]:
    def fill(folder: Path) -> Stored:
        for name in ("one", "two"):
            (folder / name).write_bytes(content)
        summary = Summary(content.decode(), has_misses=False, special="", threads=[])
        rest: dict[str, Any] = {"inputs": [], "mapped": [], "asked": [], "known": None, "files": {}}
        return Stored("2026-01-01 00:00", threads=1, summary=summary, **rest)

    return fill


@pytest.mark.parametrize("name", ["one", "two", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "emptied", "gone"])
def test_damage_is_seen(cache: Path, name: str, damage: str) -> None:
    entry = Entry(cache, "key")
    assert entry.read() is None
    entry.write(filled(bytes(1000)))
    assert entry.read() is not None
    path = cache / "key" / name
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes({"truncated": content[:-1], "changed": b"{" + content[1:-1] + b"\1", "emptied": b""}[damage])
    assert entry.read() is None
    entry.write(filled(b"new"))
    stored = entry.read()
    assert stored is not None
    assert stored.summary.text == "new"


def test_writers_at_once_leave_one_whole_entry(cache: Path) -> None:
    writers = [Entry(cache, "key") for _ in range(4)]
    contents = {str(number) * 100_000 for number in range(4)}

    def write(number: int) -> None:
        for _ in range(25):
            writers[number].write(filled((str(number) * 100_000).encode()))
            stored = writers[number].read()
            assert stored is None or stored.summary.text in contents

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    stored = Entry(cache, "key").read()
    assert stored is not None
    assert {(cache / "key" / name).read_text() for name in ("one", "two")} == {stored.summary.text}
    assert entries(cache) == [cache / "key"]


def test_what_is_loaded_while_another_process_writes_is_loaded_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, loaded = Entry(cache, "key"), list[str]()

    def load(folder: Path) -> str:
        content = (folder / "one").read_text()
        if not loaded:
            Entry(cache, "key").write(filled(b"new"))
        loaded.append(content)
        return content

    monkeypatch.setattr("loopwright.caching.entry.load", load)
    entry.write(filled(b"old"))
    assert entry.load() == "new"
    assert loaded == ["old", "new"]


@pytest.mark.usefixtures("known")
def test_the_next_process_needs_neither_the_compiler_nor_pytorch(
    service: FakeService, client: loopwright.Client, cache: Path, tmp_path: Path
) -> None:
    path, x = tmp_path / "model.pt2", torch.linspace(-2, 2, 48).reshape(3, 16)
    torch.export.save(torch.export.export(Net(0.5).eval(), (x,)), path)
    in_parent = client.compile(path, cache=cache)  # in a child
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    np.save(tmp_path / "x.npy", x.numpy())
    heavy = ("torch", "tvm", "httpx", "pydantic", "cryptography", "onnx")
    script = f"""
import sys
import numpy as np
import loopwright
model = loopwright.Client({service.url!r}, "secret").compile({str(path)!r}, cache={str(cache)!r})
np.save({str(tmp_path / "y.npy")!r}, model(np.load({str(tmp_path / "x.npy")!r})))
print([name for name in {heavy} if name in sys.modules], "libtvm_compiler" in open("/proc/self/maps").read())
"""
    service.requests.clear()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[] False\n", done.stderr
    assert [request.path for request in service.requests] == [RECORDS]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), Net(0.5)(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(in_parent(x), Net(0.5)(x).detach())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The contents that were read for their digests; files settle at once."""
    monkeypatch.setattr("loopwright.caching.file_digests._SETTLED_NS", -(10**9))
    return []


def digest(cache: Path, path: Path, read: list[bytes]) -> str:
    def beside(content: bytes) -> list[str]:
        read.append(content)
        return ["weights.bin"]

    found = FileDigests(cache).of(path, beside)
    assert found.beside == ["weights.bin"]
    return found.sha256


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_read_once_and_again_after_each_change(tmp_path: Path, read: list[bytes]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    before = path.stat()
    assert digest(tmp_path, path, read) == digest(tmp_path, path, read) == sha256(b"one")
    assert read == [b"one"]
    with path.open("r+b") as file:  # the same inode, size and time of modification
        file.write(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digest(tmp_path, path, read) == sha256(b"two")
    other = tmp_path / "other"
    other.write_bytes(b"six")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert digest(tmp_path, path, read) == digest(tmp_path, path, read) == sha256(b"six")
    assert read == [b"one", b"two", b"six"]


def test_a_digest_is_not_kept_of_a_file_that_has_just_been_written(tmp_path: Path) -> None:
    path, read = tmp_path / "model.onnx", list[bytes]()
    path.write_bytes(b"one")
    digest(tmp_path, path, read)
    digest(tmp_path, path, read)
    assert read == [b"one", b"one"]


@pytest.mark.parametrize("trouble", ["restart", "truncated", "other JSON", "gone"])
def test_a_digest_that_may_be_wrong_is_not_taken(
    tmp_path: Path, read: list[bytes], monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    digest(tmp_path, path, read)
    [kept] = (tmp_path / ".digests").iterdir()
    if trouble == "restart":
        monkeypatch.setattr("loopwright.caching.file_digests._boot", lambda: "another")
    elif trouble == "truncated":
        kept.write_bytes(kept.read_bytes()[:-20])
    elif trouble == "other JSON":
        kept.write_text("[1, 2]")
    else:
        kept.unlink()
    assert digest(tmp_path, path, read) == sha256(b"one")
    assert read == [b"one", b"one"]


def test_each_option_of_a_model_is_in_its_key(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(b"")
    models = [
        Model(path),
        Model(path, exact_math=True),
        Model(path, math="tf32"),
        Model(path, shares_weights=True),
        Model(path, int8_activations=True),
        Model(path, shapes={"n": 2}),
    ]
    assert len({key(model, None, FileDigests(tmp_path)) for model in models}) == len(models)


def test_a_child_gets_what_was_asked_for_and_its_errors_are_raised_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[child.Work] = []

    def ran(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        seen.append(child.read(Path(command[-1])))
        return subprocess.CompletedProcess(command, 0, json.dumps(answers[len(seen) - 1]) + "\n", "")

    monkeypatch.setattr("loopwright.caching.child.subprocess.run", ran)
    lock = Lock({"kind": "llvm"}, (), ())
    x = {"x": np.arange(6, dtype="float16").reshape(2, 3)}
    source = Model("net.onnx", example_inputs=x, shapes={"n": 2}, exact_math=True)
    options = CompileOptions({"kind": "llvm"}, {"w": torch.ones(2)}, verify=False, lock=lock)
    work = child.Work(source, options, tmp_path / "entry")
    refused = {"type": "about:blank", "title": "No", "status": 401, "detail": "not you"}
    answers: list[dict[str, Any]] = [
        {},
        {"kind": "WrongAnswer", "message": "output 0 differs", "problem": None},
        {"kind": "Unauthorized", "message": "", "problem": refused},
        {"kind": "SystemError", "message": "oh", "problem": None},
    ]
    child.compile_in_child(work, {})
    for kind, message in (
        (WrongAnswer, "output 0 differs"),
        (Unauthorized, "not you"),
        (RuntimeError, "SystemError: oh"),
    ):
        with pytest.raises(kind, match=message):
            child.compile_in_child(work, {})
    told = seen[0]
    assert (told.source.model, told.source.shapes, told.source.exact_math) == (
        str(Path("net.onnx").absolute()),
        {"n": 2},
        True,
    )
    np.testing.assert_array_equal(told.source.example_inputs["x"], x["x"])
    assert told.options.params is not None
    np.testing.assert_array_equal(told.options.params["w"], np.ones(2, "float32"))
    assert replace(told.options, params=options.params) == options
    assert told.entry == tmp_path / "entry"


def test_a_child_that_dies_says_what_it_said_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died = subprocess.CompletedProcess([], -9, "", "first\nout of memory\n")
    monkeypatch.setattr("loopwright.caching.child.subprocess.run", lambda *_, **__: died)
    work = child.Work(Model("net.onnx"), CompileOptions(), tmp_path)
    with pytest.raises(RuntimeError, match="status -9: out of memory"):
        child.compile_in_child(work, {})


def test_only_files_and_what_can_become_one_go_to_a_child() -> None:
    assert child.takes(Model("net.onnx"), None)
    assert child.takes(Model(Path("net.pt2")), {"w": np.ones(2, "float16")})
    assert not child.takes(Model("net.py"), None)
    assert not child.takes(Model(two_layers()), None)
    assert not child.takes(Model("net.onnx"), {"w": np.ones(2, ml_dtypes.bfloat16)})


@pytest.mark.usefixtures("known")
def test_onnx_files_are_told_apart_with_the_tensors_beside_them(
    client: loopwright.Client, cache: Path, tmp_path: Path, builds: list[Any]
) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def write(value: float) -> Path:
        weight = numpy_helper.from_array(np.full((64, 64), value, "float32"), "w")
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in "xy")
        graph = helper.make_graph([node], "g", [x], [y], [weight])
        path = tmp_path / "model.onnx"
        (tmp_path / "weights.bin").unlink(missing_ok=True)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        return path

    for value, builds_so_far in ((1.0, 1), (1.0, 1), (2.0, 2)):
        program = client.compile(write(value), cache=cache)
        assert program(np.ones((1, 64), "float32"))[0, 0] == 64 * value
        assert len(builds) == builds_so_far


@pytest.mark.usefixtures("known")
def test_a_folder_that_others_may_write_to_is_refused(client: loopwright.Client, cache: Path) -> None:
    compiled(client, cache)
    [entry] = entries(cache)
    for folder in (cache, entry):
        os.chmod(folder, 0o777)
        with pytest.raises(PermissionError, match=rf"chmod go-w {folder}"):
            compiled(client, cache)
        os.chmod(folder, 0o700)


@pytest.mark.usefixtures("known")
def test_what_killed_writers_left_goes_and_nothing_else(client: loopwright.Client, cache: Path) -> None:
    for name in (".loopwright-old", ".loopwright-new", ".git"):
        (cache / name).mkdir(parents=True)
        if name != ".loopwright-new":
            os.utime(cache / name, (0, 0))
    os.chmod(cache, 0o700)
    compiled(client, cache)
    hidden = {each.name for each in cache.iterdir() if each.name.startswith(".")}
    assert hidden == {".loopwright-new", ".git", ".digests"}


def test_what_no_cache_can_hold_is_refused(service: FakeService, client: loopwright.Client, cache: Path) -> None:
    serve(service)
    with pytest.raises(ValueError, match="models without state"):
        client.compile(Net(0.0), example_inputs=(torch.ones(1, 16),), state="functional", cache=cache)
    with pytest.raises(ValueError, match="no Relax function main"):
        client.compile(MM_RELU, cache=cache)
    with pytest.raises(UnsupportedModel, match="this machine's CPU"):
        client.compile(two_layers(), {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "num-cores": 2}, cache=cache)
    assert list(cache.iterdir()) == []
