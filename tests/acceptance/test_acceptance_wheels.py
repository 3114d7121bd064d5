"""The two wheels alone, in an environment of their own: from files of models to a comparison, without a checkout."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copy2, copytree
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from tests.support.processes import Family, clean_environment
from tests.support.service import ROOT
from tests.support.waiting import wait_for

SECONDS = 600.0
"""For a command, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A user's: an environment, a home, and a folder without anything of the repository's."""

    folder: Path
    family: Family

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    def run(self, *words: str, status: int = 0) -> str:
        """Run ``loopwright``, and return what it printed."""
        done = self.program(str(self.bin / "loopwright"), *words)
        assert done.returncode == status, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def program(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**clean_environment(), "HOME": str(self.folder / "home"), "COLUMNS": "160"}
        environment.pop("PYTHONPATH", None)
        return subprocess.run(
            words, cwd=self.folder / "work", env=environment, capture_output=True, text=True, timeout=SECONDS
        )


def linked(source: str, copy: str) -> None:
    """Copy a file without its contents, where both are on one disk."""
    try:
        os.link(source, copy)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy2(source, copy)


def install(folder: Path) -> None:
    """Make an environment with the packages of this one, but with Loopwright from its wheels."""
    wheels = folder / "wheels"
    for project in (ROOT, ROOT / "deploy" / "wheel"):
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
        subprocess.run(build, cwd=project, check=True, capture_output=True)
    base: str = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    packages = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    copytree(
        Path(sys.prefix) / packages,
        folder / "venv" / packages,
        ignore=lambda _, names: [name for name in names if "loopwright" in name or name == "__pycache__"],
        copy_function=linked,
        dirs_exist_ok=True,
    )
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv" / "bin" / "python"), "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", *wheels.glob("*.whl")], check=True, capture_output=True)


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """A machine on which nothing is left behind."""
    for name in ("home", "work"):
        (folder / name).mkdir()
    install(folder)
    family = Family(folder / "home")
    try:
        yield Machine(folder, family)
    finally:
        family.send(signal.SIGKILL)


def save_onnx(path: Path) -> None:
    """A product with a bias, its positive part, and the sums of its rows."""
    weight = torch.randn(96, 72).numpy()
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "weight"], ["product"]),
            helper.make_node("Relu", ["product"], ["positive"]),
            helper.make_node("ReduceSum", ["positive", "axes"], ["y"], keepdims=0),
        ],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [40, 96])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [40])],
        [onnx.numpy_helper.from_array(weight, "weight"), helper.make_tensor("axes", TensorProto.INT64, [1], [1])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def save_pt2(path: Path) -> None:
    model = nn.Sequential(nn.Linear(88, 104), nn.SiLU(), nn.Linear(104, 24)).eval()
    torch.export.save(torch.export.export(model, (torch.randn(9, 88),)), path)


def tuned(machine: Machine, model: str, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tune a model for a few seconds; its job, and the engines by name."""
    found = json.loads(machine.run("tune", model, "--max-seconds", "15", "--max-trials", "24", *words, "--json"))
    assert found["job"]["state"] == "succeeded"
    assert all(task["certified"] for task in found["job"]["tasks"])
    return found["job"], {engine["name"]: engine for engine in found["comparison"]["engines"]}


def _is_running(user: Machine) -> bool:
    return user.program(str(user.bin / "loopwright"), "service", "status").returncode == 0


@pytest.mark.whole
def test_the_wheels_alone_take_models_to_a_comparison(tmp_path: Path) -> None:
    with machine(tmp_path) as user:
        save_onnx(tmp_path / "work" / "net.onnx")
        save_pt2(tmp_path / "work" / "layers.pt2")

        assert user.program(str(user.bin / "python"), "-c", "import loopwright_service").returncode == 0
        for room in ("service", "db", "workers", "tuner"):
            assert user.program(str(user.bin / "python"), "-c", f"import {room}").returncode == 1, room

        user.run("service", "status", status=3)
        job, engines = tuned(user, "net.onnx")
        assert engines.keys() == {"loopwright", "ort", "openvino"}
        assert all(engine["us"] is not None for engine in engines.values()), engines
        status = json.loads(user.run("service", "status", "--json"))
        shown = json.loads(user.run("job", "show", "net", "--json"))
        assert (shown["id"], shown["name"]) == (job["id"], "net")

        os.kill(status["pid"], signal.SIGKILL)
        wait_for("the end of the service", lambda: not _is_running(user))
        _, engines = tuned(user, "layers.pt2", "--against", "torch")
        assert engines["torch"]["ratio"]["low"] <= engines["torch"]["ratio"]["value"]
        again = json.loads(user.run("service", "status", "--json"))
        assert (again["url"], again["pid"] != status["pid"]) == (status["url"], True)
        assert json.loads(user.run("job", "show", job["id"], "--json")) == shown

        page = user.program(str(user.bin / "python"), "-c", f"import httpx; print(httpx.get({status['url']!r}).text)")
        assert "<title>" in page.stdout
        assert user.run("service", "stop") == "the service has stopped\n"
        wait_for("its processes to end", lambda: not user.family.living(), 60)
