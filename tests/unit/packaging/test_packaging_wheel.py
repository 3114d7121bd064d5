"""The wheel is the client and nothing else."""

from __future__ import annotations

import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from loopwright.version import VERSION

ROOT = Path(__file__).parents[3]


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
    assert metadata.get_all("Provides-Extra") == ["runtime", "tvm"]
    assert "apache-tvm-ffi==0.1.14.post1; extra == 'tvm'" in requirements


def test_wheel_installs_the_command(wheel: ZipFile) -> None:
    entry_points = wheel.read(f"loopwright-{VERSION}.dist-info/entry_points.txt").decode()
    assert "loopwright = loopwright.cli:main" in entry_points
