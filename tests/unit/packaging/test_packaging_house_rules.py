"""The house rules hold, and the checks that enforce them can fail."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = {"db": "db", "loopwright": "client/loopwright", "service": "service", "tuner": "tuner", "workers": "workers"}

MAY_READ_ENVIRONMENT = {
    "service/settings.py",
    "client/loopwright/session/config.py",
    "client/loopwright/codegen/host/threads.py",  # what TVM's runtime reads
    "workers/child/warm_child.py",  # picks what a child process is given
}
HANDED_ON = {"HOME", "PATH"}
"""What a child process is given of its parent's environment: no settings."""


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", "pyproject.toml"]
    environment = {**os.environ, "PYTHONPATH": f"{directory / 'client'}{os.pathsep}{directory}"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def empty_house(tmp_path: Path) -> Path:
    """The rooms with nothing in them, under the contracts of the real house."""
    project = (ROOT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(project)
    named = set(ROOMS)
    for contract in tomllib.loads(project)["tool"]["importlinter"]["contracts"]:
        named.update(*(value for value in contract.values() if isinstance(value, list)))
        named.update(f"{room}.{layer}" for room in contract.get("containers", ()) for layer in contract["layers"])
    for name in named:
        if name.split(".")[0] in ROOMS and name.replace(".", "").isidentifier():
            folder = tmp_path
            for part in name.split("."):
                folder /= part
                folder.mkdir(exist_ok=True)
                (folder / "__init__.py").touch()
    return tmp_path


WRONG = [
    ("db", "workers"),
    ("workers", "db"),
    ("tuner", "db"),
    ("tuner", "workers"),
    ("workers", "service"),
    ("loopwright", "tuner"),
    ("loopwright", "service"),
    ("workers", "loopwright"),
    ("tuner", "loopwright.schemas"),
    ("db", "loopwright.schemas"),
    ("loopwright/codegen", "httpx"),
    ("loopwright/codegen", "pydantic"),
    ("loopwright/codegen", "tuner"),
    ("loopwright/codegen", "loopwright.schemas"),
    ("tuner", "ray"),
    ("db", "ray"),
    ("service", "sqlalchemy"),
]
"""A room and what it may not import."""


def test_each_import_the_wrong_way_is_refused(empty_house: Path) -> None:
    for number, (room, imported) in enumerate(WRONG):
        (empty_house / room / f"wrong_{number}.py").write_text(f"import {imported}\n")
    done = lint_imports(empty_house)
    assert done.returncode == 1, done.stdout + done.stderr
    for number, (room, imported) in enumerate(WRONG):
        importer = f"{room.replace('/', '.')}.wrong_{number}"
        assert f"{importer} -> {imported} (l.1)" in done.stdout, done.stdout


def test_folders_that_import_each_other_are_refused(empty_house: Path) -> None:
    for folder, imported in (("jobs", "records"), ("records", "jobs")):
        (empty_house / "service" / folder).mkdir()
        (empty_house / "service" / folder / "__init__.py").touch()
        # Two files a folder, so that no file imports in a circle.
        (empty_house / "service" / folder / "wire.py").touch()
        (empty_house / "service" / folder / "endpoints.py").write_text(f"import service.{imported}.wire\n")
    done = lint_imports(empty_house)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no folder imports in a circle BROKEN" in done.stdout


def test_imports_the_right_way_are_accepted(empty_house: Path) -> None:
    (empty_house / "service" / "right.py").write_text("import db, loopwright, tuner, workers\n")
    (empty_house / "db" / "right.py").write_text("import sqlalchemy, tuner\n")
    (empty_house / "workers" / "right.py").write_text("import ray, tuner\n")
    (empty_house / "loopwright" / "codegen" / "right.py").write_text("import numpy, tvm\n")
    (empty_house / "loopwright" / "right.py").write_text("import httpx, loopwright.codegen.right\n")
    for room in ("db", "service", "tuner", "workers"):
        (empty_house / room / "codegen.py").write_text("import loopwright.codegen.right\n")
    done = lint_imports(empty_house)
    assert done.returncode == 0, done.stdout + done.stderr


def test_codegen_imports_tvm_numpy_cryptography_and_the_standard_library_only() -> None:
    allowed = {"cryptography", "numpy", "tvm", "tvm_ffi", *sys.stdlib_module_names}
    strays = {
        f"{file.name}: {name}"
        for file in (ROOT / "client/loopwright/codegen").rglob("*.py")
        for name in imports(ast.parse(file.read_text()))
        if name.partition(".")[0] not in allowed and not name.startswith("loopwright.codegen.")
    }
    assert not strays


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_private_parts_of_ray_are_used_in_one_file() -> None:
    private = re.compile(r"\bray\._[a-z]|from ray import _")
    users = {file for file in ROOT.joinpath("workers").rglob("*.py") if private.search(file.read_text())}
    assert users == {ROOT / "workers/ray/private.py"}


def environment_reads(tree: ast.AST) -> Iterator[str]:
    """Names of the environment variables read in ``tree``; ``?`` where a name is computed."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get" | "pop"), args=[name, *_]):
                pass
            case ast.Call(func=ast.Attribute(attr="getenv"), args=[name, *_]):
                pass
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=name, ctx=ast.Load()):
                pass
            case _:
                continue
        yield str(name.value) if isinstance(name, ast.Constant) else "?"


def test_environment_reads_are_seen() -> None:
    source = "import os\nos.environ['A']; os.environ.get('B'); os.getenv('C'); os.environ['D'] = '1'; os.getenv(x)"
    assert sorted(environment_reads(ast.parse(source))) == ["?", "A", "B", "C"]


def test_environment_is_read_only_in_settings() -> None:
    strays = {
        str(file.relative_to(ROOT)): sorted(names)
        for room in ROOMS.values()
        for file in (ROOT / room).rglob("*.py")
        if "node_modules" not in file.parts and str(file.relative_to(ROOT)) not in MAY_READ_ENVIRONMENT
        if (names := set(environment_reads(ast.parse(file.read_text()))) - HANDED_ON)
    }
    assert not strays
