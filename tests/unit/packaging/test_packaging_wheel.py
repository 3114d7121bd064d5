"""The client's wheel is the client and nothing else; that of the service keeps its rooms to itself."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from email.parser import Parser
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

from loopwright.version import VERSION

ROOT = Path(__file__).parents[3]
SERVICE = ROOT / "deploy" / "wheel"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = out.glob("*.whl")
    return ZipFile(path)


def test_wheel_holds_only_the_client(wheel: ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"loopwright", f"loopwright-{VERSION}.dist-info"}


def test_wheel_holds_every_file_of_the_client(wheel: ZipFile) -> None:
    client = ROOT / "client"
    sources = {str(file.relative_to(client)) for file in client.rglob("*.py")}
    assert sources <= set(wheel.namelist())
    assert "loopwright/py.typed" in wheel.namelist()


def test_wheel_asks_for_light_dependencies_and_offers_tvm(wheel: ZipFile) -> None:
    metadata = Parser().parsestr(wheel.read(f"loopwright-{VERSION}.dist-info/METADATA").decode())
    requirements = metadata.get_all("Requires-Dist", [])
    always = {requirement.split(">")[0] for requirement in requirements if "extra ==" not in requirement}
    assert always == {"cryptography", "httpx", "pydantic", "rich", "typer"}
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("Provides-Extra") == ["local", "runtime", "tvm"]
    assert "loopwright-service; extra == 'local'" in requirements
    assert "apache-tvm-ffi==0.1.14.post1; extra == 'tvm'" in requirements


def test_wheel_installs_the_command(wheel: ZipFile) -> None:
    entry_points = wheel.read(f"loopwright-{VERSION}.dist-info/entry_points.txt").decode()
    assert "loopwright = loopwright.cli:main" in entry_points


@pytest.fixture(scope="module")
def service_build() -> ModuleType:
    """What builds the wheel of the service."""
    spec = importlib.util.spec_from_file_location("hatch_build", SERVICE / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_services_wheel_holds_every_file_of_the_rooms_and_what_is_built(service_build: ModuleType) -> None:
    listed = subprocess.run(["git", "ls-files", *service_build.ROOMS], cwd=ROOT, capture_output=True, text=True)
    sources = {name for name in listed.stdout.splitlines() if not name.startswith("service/dashboard/")}
    packed = {file.relative_to(ROOT).as_posix() for file in service_build.files()}
    assert sources <= packed
    assert {"service/dashboard/dist/index.html", "service/documentation/site/index.html"} <= packed
    others = {name for name in packed - sources if not name.startswith(service_build.BUILT)}
    assert all(name.endswith((".py", ".pyi")) for name in others), others
    assert not any("node_modules" in name or "__pycache__" in name or "/.stamp" in name for name in packed)


def test_the_services_wheel_asks_for_the_client_of_its_version_and_for_what_is_locked(
    service_build: ModuleType,
) -> None:
    metadata = {"version": VERSION}
    service_build.Metadata(str(SERVICE), {}).update(metadata)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert metadata["dependencies"] == [f"loopwright=={VERSION}", *groups["service"], *groups["workers"]]
    assert metadata["requires-python"] == ">=3.11"
