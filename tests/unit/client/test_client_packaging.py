"""Packages: what is in them, how they run without TVM's compiler, and what happens to those that were changed."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
from torch import nn
from tvm import relax
from tvm.s_tir import Schedule

import loopwright
from loopwright import UnsupportedModel, frontends
from loopwright.applying.lookup import lower
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import function_digest, normal_form
from loopwright.codegen.serialization import trace_to_list
from loopwright.codegen.target import target_from
from loopwright.model import Model
from loopwright.packaging import replay
from loopwright.packaging.exporting import write_tensors
from loopwright.packaging.load import (
    CPU,
    HUGE_PAGE,
    POOLED,
    _grants_huge_pages,
    as_tensor,
    copy_to_huge_pages,
    give_back_weights,
    mapped,
)
from loopwright.packaging.manifest import Check, Manifest, TensorSpec
from loopwright.packaging.package_files import digests
from loopwright.packaging.verified import NoPackage
from loopwright.packaging.verify import read
from tests.support.evidence import KEY
from tests.support.programs import MM_RELU
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import FakeService, best_json
from tests.unit.client.known_bests import LLVM, serve


class Net(nn.Module):
    """Two inputs of unlike kinds, two outputs, and a table that is large enough for a file of its own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.linear = nn.Embedding(4100, 16), nn.Linear(16, 4)

    def forward(self, ids: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.linear(self.table(ids) + x)
        return torch.relu(y), y.argmax(-1)


INPUTS = (torch.arange(6).reshape(2, 3), torch.linspace(-1, 1, 96).reshape(2, 3, 16))


def bests(model: Any, inputs: Any) -> list[dict[str, Any]]:
    """A best for each function of a model that has blocks: its first loops run in parallel."""
    module = lower(frontends.to_program(Model(model, example_inputs=inputs)), target_from(LLVM))
    found = []
    for _, func in prim_funcs(module):
        schedule = Schedule(normal_form(func))
        for block in schedule.get_child_blocks(schedule.get_sblock("root")):
            if loops := schedule.get_loops(block):
                schedule.parallel(loops[0])
        found.append(best_json(function_digest(func), trace_to_list(schedule.trace), target=LLVM))
    return found


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    service = FakeService()
    serve(service, *bests(Net().eval(), INPUTS))
    folder = tmp_path_factory.mktemp("package") / "out"
    with loopwright.Client(service.url, "secret") as client:
        assert client.package(Net().eval(), folder, example_inputs=INPUTS, name="a net") == folder
        assert client.last_report is not None
        assert client.last_report.misses == ()
    service.close()
    return folder


@pytest.fixture
def copy(package: Path, tmp_path: Path) -> Path:
    """The package, to be spoilt."""
    return Path(shutil.copytree(package, tmp_path / "copy"))


def changed(folder: Path, **fields: Any) -> None:
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **fields}))


def in_another_process(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in the package's folder; what it prints is what is tested."""
    unset = ("TVM_NUM_THREADS", "TVM_BIND_THREADS", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_manifest_says_what_is_in_it(package: Path) -> None:
    manifest = read(package)
    assert (manifest.name, manifest.format, manifest.threads) == ("a net", 1, 2)
    assert [(each.name, each.shape, each.dtype) for each in manifest.inputs] == [
        ("ids", (2, 3), "int64"),
        ("x", (2, 3, 16), "float32"),
    ]
    assert {each.outcome for each in manifest.functions} == {"tuned"}
    assert all(each.check and each.certificate for each in manifest.functions)
    assert {"model.so", "checks.so", "example.npz", "load.py", "load.cc", "lib/libtvm_runtime.so"} <= set(
        manifest.files
    )
    assert {"lib/libloopwright_threads.so", "weights.bin"} <= set(manifest.files)
    assert [(each.shape, each.dtype, each.first) for each in manifest.mapped] == [((4100, 16), "float32", 0)]
    assert manifest.weights.count >= 2
    assert manifest.weights.bytes >= 4 * (4100 * 16 + 16 * 4 + 4)
    for licence in manifest.licences:
        assert "Apache" in licence.licence
        assert any(file.endswith("LICENSE.txt") for file in licence.files)
        assert all((package / file).exists() for file in licence.files)


def test_it_runs_with_the_runtime_alone(package: Path) -> None:
    done = in_another_process(
        package,
        "import os, sys, numpy as np\n"
        "from load import load\n"
        "model = load()\n"
        "y, best = model(np.arange(6).reshape(2, 3), np.linspace(-1, 1, 96, dtype='float32').reshape(2, 3, 16))\n"
        "assert not {'tvm', 'loopwright'} & set(sys.modules), 'more than the runtime'\n"
        "import tvm_ffi\n"
        "assert tvm_ffi.get_global_func('loopwright.install_threads', allow_missing=True), 'threads of TVM'\n"
        "print(os.environ['TVM_NUM_THREADS'], os.environ['TVM_BIND_THREADS'], type(y).__name__, y.ravel().tolist())\n",
    )
    assert done.returncode == 0, done.stderr
    threads, bound, kind, values = done.stdout.split(" ", 3)
    assert int(threads) == min(2, len(os.sched_getaffinity(0)))
    assert (bound, kind) == ("0", "ndarray")
    with torch.no_grad():
        expected, _ = Net().eval()(*INPUTS)
    np.testing.assert_allclose(json.loads(values), expected.ravel(), rtol=1e-5, atol=1e-6)


@pytest.mark.whole
def test_it_takes_tensors_of_any_kind_and_returns_the_same(package: Path) -> None:
    model = loopwright.load(package)
    with torch.no_grad():
        expected, best = Net().eval()(*INPUTS)
    ids, x = INPUTS
    misaligned = np.zeros(97, np.float32)[1:].reshape(2, 3, 16)
    misaligned[...] = x
    sliced = torch.stack([x, x], -1)[..., 0]
    read_only = x.numpy().copy()
    read_only.flags.writeable = False
    for given in (x, sliced, misaligned, read_only):
        y, place = model(ids, given)
        assert isinstance(y, torch.Tensor)
        torch.testing.assert_close(y, expected)
        assert torch.equal(place, best)
    y, _ = model(tvm_ffi.from_dlpack(ids), tvm_ffi.from_dlpack(x))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_inputs_that_do_not_fit_are_refused(package: Path) -> None:
    model = loopwright.load(package)
    with pytest.raises(ValueError, match=r"ids, x"):
        model(INPUTS[0])
    with pytest.raises(ValueError, match=r"ids.*\(2, 3\)"):
        model(torch.zeros(2, 4), INPUTS[1])


@pytest.mark.whole
def test_it_runs_from_c_plus_plus(package: Path, tmp_path: Path) -> None:
    program = tmp_path / "load"
    # A program inside of the folder would make `verify` refuse the package.
    assert " -o ../load && ../load" in (package / "load.cc").read_text()
    flags = [f"-I{tvm_ffi.libinfo.find_include_path()}", f"-I{tvm_ffi.libinfo.find_dlpack_include_path()}"]
    libraries = [f"-L{package / 'lib'}", f"-Wl,-rpath,{package / 'lib'}", "-Wl,--no-as-needed"]
    command = ["c++", "-std=c++17", str(package / "load.cc"), *flags, *libraries, "-ltvm_ffi", "-ltvm_runtime"]
    subprocess.run([*command, "-o", str(program)], check=True)
    for _ in range(5):  # its threads may run in any part of their code when the process ends
        done = subprocess.run([str(program), str(package)], capture_output=True, text=True, check=True)
        assert done.stdout == "output of shape ( 2 3 4 )\noutput of shape ( 2 3 )\n"


def keys_file(tmp_path: Path, *keys: dict[str, Any]) -> str:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(keys))
    return str(file)


def test_a_package_that_holds_is_verified(package: Path, run: Command, tmp_path: Path) -> None:
    done = run("verify", str(package), "--rounds", "3", "--json", "--keys", keys_file(tmp_path, KEY))
    found = json.loads(done.out)
    assert done.status == (0 if found["holds"] else 1)
    assert found["model"]["state"] == "holds"
    assert found["model"]["error"] < 1e-6
    assert found["model"]["us"] is not None
    for function in found["functions"]:
        assert function["state"] in ("holds", "slower")  # the schedules of this test are no good ones
        assert function["error"] is not None
        assert function["certified_us"] == 10.0
        middle, low, high = function["speedup"]
        assert low <= middle <= high


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda function: {"workload_hash": "f" * 32}, "is for the function"),
        (lambda function: {"device_class": "class-2"}, "is for the function"),
        (lambda function: {"certificate": function["certificate"] | {"best_us": 1.0}}, "best_us"),
        (lambda function: {"certificate": function["certificate"] | {"signed": None}}, "not signed"),
    ],
)
def test_a_certificate_of_a_package_that_was_changed_is_found(
    copy: Path, run: Command, tmp_path: Path, spoil: Any, said: str
) -> None:
    first, *others = json.loads((copy / "manifest.json").read_text())["functions"]
    changed(copy, functions=[first | spoil(first), *others])
    done = run("verify", str(copy), "--keys", keys_file(tmp_path, KEY))
    assert done.status == 3
    assert said in done.err


def test_a_package_of_another_service_is_found(package: Path, run: Command, tmp_path: Path) -> None:
    done = run("verify", str(package), "--keys", keys_file(tmp_path))
    assert (done.status, "none of no keys" in done.err) == (3, True)


def test_a_model_that_computes_something_else_is_found(copy: Path, run: Command) -> None:
    with np.load(copy / "example.npz") as example:
        arrays = dict(example)
    arrays["expected_0"] = arrays["expected_0"] + 1
    np.savez(copy / "example.npz", **arrays)
    changed(copy, files=dict(digests(copy)))
    done = run("verify", str(copy), "--rounds", "1")
    assert done.status == 1
    assert "(the whole model)" in done.out
    assert "differs from that of PyTorch" in done.out


@pytest.mark.parametrize("change", ["result", "input"])
def test_a_function_that_computes_something_else_is_found(change: str) -> None:
    """A program that writes other results, or over its inputs, is wrong."""

    def reference(x: Any, y: Any) -> None:
        torch.from_dlpack(y).copy_(torch.from_dlpack(x) * 2)

    def tuned(x: Any, y: Any) -> None:
        reference(x, y)
        torch.from_dlpack(y if change == "result" else x)[0, 0] += 1

    spec = TensorSpec(name="", shape=(2, 3), dtype="float32")
    check = Check(tuned="f", reference="r", args=(spec, spec), outputs=(False, True), packing=None)
    found = replay.function({"f": tuned, "r": reference}, "twice", check, rounds=1)
    assert found.run_secs == []
    assert f"argument {1 if change == 'result' else 0} differs" in (found.wrong or "")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "model.so").write_bytes(b"x"), "model.so"),
        (lambda folder: (folder / "lib" / "libtvm_runtime.so").unlink(), "lib/libtvm_runtime.so"),
        (lambda folder: (folder / "more.py").write_text("x"), "more.py"),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json"),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "not a manifest that this version can read"),
        (lambda folder: changed(folder, format=2), "not a manifest that this version can read"),
    ],
)
def test_a_package_that_was_changed_is_refused(copy: Path, spoil: Any, said: str, run: Command) -> None:
    spoil(copy)
    done = run("verify", str(copy))
    assert done.status == 3
    assert said in done.err


@pytest.mark.whole
def test_a_package_that_cannot_run_here_says_why(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / "model.so").write_bytes(b"no library")
    changed(copy, files=dict(digests(copy)))
    with pytest.raises(NoPackage, match=r"model\.so"):
        loopwright.verify(copy)
    illegal = subprocess.CompletedProcess([], -4, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: illegal)
    with pytest.raises(NoPackage, match="CPU"):
        loopwright.verify(copy)


def test_what_cannot_be_packaged_is_refused(
    service: FakeService, client: loopwright.Client, package: Path, tmp_path: Path
) -> None:
    serve(service)
    with pytest.raises(FileExistsError, match="empty"):
        client.package(Net().eval(), package, example_inputs=INPUTS)
    with pytest.raises(ValueError, match="main"):
        client.package(MM_RELU, tmp_path / "functions")
    with pytest.raises(UnsupportedModel, match="CPU"):
        client.package(Net().eval(), tmp_path / "gpu", "cuda", example_inputs=INPUTS)
    assert not (tmp_path / "functions").exists()


@pytest.mark.whole
def test_a_model_of_which_nothing_is_known_is_packaged(
    service: FakeService, client: loopwright.Client, tmp_path: Path
) -> None:
    serve(service)
    client.package(
        nn.Linear(4, 2).to(torch.bfloat16).eval(), tmp_path / "out", example_inputs=torch.ones(1, 4).bfloat16()
    )
    manifest = Manifest.model_validate_json((tmp_path / "out" / "manifest.json").read_text())
    assert {each.outcome for each in manifest.functions} == {"missed"}
    assert "checks.so" not in manifest.files
    found = loopwright.verify(tmp_path / "out", rounds=1)
    assert found.holds
    assert {each.state for each in found.functions} == {"not checked"}


def test_loading_and_writing_say_nothing_and_keep_what_others_say(package: Path, tmp_path: Path) -> None:
    script = """
import os
from loopwright.packaging.load import load, quiet
load(".")
with quiet():
    os.write(2, b"kept\\n[1] x.cc:1: Warning: Scope Saving: global\\nkept, too\\n")
"""
    done = in_another_process(package, script)
    assert (done.returncode, done.stderr) == (0, "kept\nkept, too\n")


def resident_bytes(library: Path) -> int:
    """Return how much of a file is resident where this process has it mapped."""
    found, is_its = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            is_its = rest[-1] == str(library)
        elif is_its and name == "Rss:":
            found += 1024 * int(rest[0])
    return found


def test_weights_are_resident_once_and_can_be_read_again(tmp_path: Path) -> None:
    library, weights = tmp_path / "model.so", np.linspace(1, 2, 2**18, dtype=np.float32)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(weights.shape, "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, relax.const(weights))))
    loopwright.export_library(tvm.compile(builder.get(), "llvm"), library)
    for _ in range(2):
        machine = tvm_ffi.load_module(str(library))["vm_load_executable"]()
        assert resident_bytes(library) > weights.nbytes
        give_back_weights(library)
        assert resident_bytes(library) < weights.nbytes // 2
        machine["vm_initialization"](CPU, 0, POOLED)
        np.testing.assert_array_equal(np.from_dlpack(machine["main"](as_tensor(weights))), weights + weights)


def test_tensors_are_mapped_as_they_were_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: list[Any] = [
        rng.standard_normal((3, 5)).astype("float32"),
        rng.standard_normal((7, 1, 3)).astype(ml_dtypes.bfloat16),
        rng.integers(-128, 128, 65).astype("int8"),
        np.array(2**40 + 1),
    ]
    places = write_tensors(tmp_path / "weights.bin", map(tvm.runtime.tensor, arrays))
    forms = [
        {"shape": array.shape, "dtype": str(array.dtype), "first": first}
        for array, first in zip(arrays, places, strict=True)
    ]
    _, tensors = mapped(tmp_path / "weights.bin", forms)
    for array, tensor in zip(arrays, tensors, strict=True):
        assert (tuple(tensor.shape), str(tensor.dtype)) == (array.shape, str(array.dtype))
        assert tensor.data_ptr() % 64 == 0
        assert ctypes.string_at(tensor.data_ptr(), array.nbytes) == array.tobytes()
    (tmp_path / "weights.bin").write_bytes(bytes(places[-1] + 7))
    with pytest.raises(ValueError, match="8 bytes"):
        mapped(tmp_path / "weights.bin", forms)


@pytest.mark.skipif(not _grants_huge_pages(), reason="the kernel grants no huge pages")
def test_mapped_weights_move_to_huge_pages_while_they_are_read(tmp_path: Path) -> None:
    file, values = tmp_path / "weights.bin", np.random.default_rng(0).integers(0, 256, 5 * HUGE_PAGE + 4321, np.uint8)
    file.write_bytes(values.tobytes())
    memory, [tensor] = mapped(file, [{"shape": values.shape, "dtype": "uint8", "first": 0}])
    address, stop, wrong = tensor.data_ptr(), threading.Event(), list[int]()

    def read() -> None:
        while not stop.is_set():
            wrong.extend(np.flatnonzero(np.from_dlpack(tensor) != values))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        copy_to_huge_pages(memory)
        stop.set()
        for reader in readers:
            reader.result()
    assert wrong == []
    assert (np.from_dlpack(tensor) == values).all()
    assert tensor.data_ptr() == address
    assert resident_bytes(file) < 2 * HUGE_PAGE
    assert file.read_bytes() == values.tobytes()


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(np.arange(60.0)[1:].reshape(59, 1), id="misaligned"),
        pytest.param(np.arange(60.0).reshape(5, 12).T, id="transposed"),
        pytest.param(np.arange(60)[::2], id="every second"),
        pytest.param(np.array(7, np.float32), id="scalar"),
        pytest.param(np.frombuffer(bytes(range(70)), np.uint8)[3:], id="read only"),
    ],
)
def test_arrays_that_programs_cannot_read_in_place_are_copied(given: Any) -> None:
    tensor = as_tensor(given)
    assert tensor.is_contiguous()
    assert tensor.data_ptr() % 64 == 0
    np.testing.assert_array_equal(np.from_dlpack(tensor), given)
