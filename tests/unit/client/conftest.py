"""What the client's tests share: a service that answers as told, and a client of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tvm
from tvm import relax
from tvm.s_tir import Schedule

import loopwright
from loopwright import Client, cli, frontends
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import normal_form, workload_digest
from loopwright.codegen.serialization import module_to_json, trace_to_list
from loopwright.codegen.versions import TVM_VERSION
from loopwright.session import transport
from tests.support.evidence import rechecked
from tests.support.programs import MM_RELU
from tests.unit.client.fake_service import Answer, FakeService, Request, best_json, page
from tests.unit.client.known_bests import HASH, LLVM, parallel_matmul, scheduled, serve, two_layers

API = "/api/v1"
OTHER = "b" * 32
VERSION = {"loopwright": "0.0.0", "tvm": TVM_VERSION, "api": "v1"}
REPORT = {"workloads": 1, "imported": 1, "duplicates": 0, "errors": []}


class Done(NamedTuple):
    status: int | str | None
    out: str
    err: str


class Command:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["loopwright", *words])
        self._monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # where help looks for the name, too
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Done(ended.value.code, *self._capsys.readouterr())


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No login, service or environment of whoever runs the tests; short waits between attempts."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folders = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "LOOPWRIGHT_DATA_DIR")
    for name in (*folders, "LOOPWRIGHT_PORT", "LOOPWRIGHT_URL", "LOOPWRIGHT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transport, "FIRST_DELAY", 0.005)


@pytest.fixture
def service() -> Iterator[FakeService]:
    fake = FakeService()
    yield fake
    fake.close()


@pytest.fixture
def client(service: FakeService) -> Iterator[loopwright.Client]:
    with loopwright.Client(service.url, "secret") as connected:
        yield connected


@pytest.fixture
def mod() -> tvm.IRModule:
    return frontends.to_program(MM_RELU).module


@pytest.fixture
def tuned(service: FakeService, mod: tvm.IRModule) -> Schedule:
    schedule = scheduled(mod)
    serve(service, best_json(HASH, trace_to_list(schedule.trace)))
    return schedule


@pytest.fixture
def layer(service: FakeService) -> tvm.IRModule:
    """The second layer's program, known to the service; the first layer's is not."""
    with tvm.target.Target(LLVM):
        lowered = relax.get_pipeline("zero")(two_layers())
    [func] = [func for var, func in prim_funcs(lowered) if var.name_hint.startswith("matmul")]
    workload = normal_form(func)
    digest = workload_digest(workload)
    serve(service, best_json(digest, parallel_matmul(workload)))
    return workload


@pytest.fixture
def run(service: FakeService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("LOOPWRIGHT_URL", service.url)
    monkeypatch.setenv("LOOPWRIGHT_TOKEN", "secret")
    monkeypatch.setenv("COLUMNS", "160")
    return Command(monkeypatch, capsys)


@dataclass(frozen=True)
class Made:
    """A pack, the key that signed it, and the file of that key's public part."""

    path: Path
    key: Path
    keys: Path


@pytest.fixture
def known(service: FakeService, mod: Any) -> list[dict[str, Any]]:
    """Three bests of two functions; of one of them, the unscheduled program is the best on another machine."""
    trace = trace_to_list(scheduled(mod).trace)
    bests = [
        best_json(HASH, trace, target=LLVM),
        best_json(HASH, None, target=LLVM, device_class="class-2", record_id="record-2"),
        rechecked(best_json(OTHER, trace, target=LLVM, name="dense_relu", record_id="record-3")),
    ]
    modules = {HASH: module_to_json(mod), OTHER: "another module"}

    def listed(request: Request) -> Answer:
        wanted = request.query.get("workload_hash")
        return Answer(page(*(each for each in bests if wanted in (None, each["workload_hash"]))))

    service.on("GET", f"{API}/bests", listed)
    service.on("GET", "/version", VERSION)
    service.on("POST", f"{API}/records/import", REPORT)
    for name, data in modules.items():
        service.on("GET", f"{API}/workloads/{name}/module", {"format": "tvm-json", "data": data})
    return bests


@pytest.fixture
def made(known: list[dict[str, Any]], client: Client, run: Command, tmp_path: Path) -> Made:
    key, keys = tmp_path / "team.key", tmp_path / "keys.json"
    keys.write_text(run("key", "new", str(key), "--json").out)
    path = tmp_path / "team.pack"
    client.export_pack(path, key=key, creator="the team", licence="Apache-2.0")
    return Made(path, key, keys)
