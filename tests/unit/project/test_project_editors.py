"""What editors and git read: hooks call the checkout's own tools, and the developers' container has what tests need."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
CONFIG = ROOT / ".pre-commit-config.yaml"
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for repo in yaml.safe_load(CONFIG.read_text())["repos"] for hook in repo["hooks"]
}
IMAGE = (ROOT / ".devcontainer" / "Dockerfile").read_text()


def test_hooks_fetch_nothing_and_call_tools_of_the_checkout() -> None:
    assert {repo["repo"] for repo in yaml.safe_load(CONFIG.read_text())["repos"]} == {"local"}
    for hook in HOOKS.values():
        assert hook["language"] == "system"
        program = Path(hook["entry"].split()[0])
        assert program.parent == Path(".venv/bin")
        assert (BIN / program.name).exists()


@pytest.mark.parametrize(("text", "status"), [("x = 1\n", 0), ("x =  1\n", 1)])
def test_a_commit_of_a_file_that_ruff_refuses_is_refused(tmp_path: Path, text: str, status: int) -> None:
    for name in (".pre-commit-config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(BIN)
    (tmp_path / "file.py").write_text(text)
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "cache"), "SKIP": "mypy,lint-imports"}
    for command in (["git", "init", "--quiet"], ["git", "add", "file.py", ".pre-commit-config.yaml"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    run = [sys.executable, "-m", "pre_commit", "run", "--files", "file.py"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr


def test_the_container_has_the_python_of_the_image_and_what_the_image_and_the_tests_need() -> None:
    base = re.compile(r"^FROM (python:\S+)", re.MULTILINE)
    product = (ROOT / "Dockerfile").read_text()
    assert base.findall(IMAGE) == sorted(set(base.findall(product)))
    packages = set(re.findall(r"^ {8}(?:[\w+-]+ )*?[\w+ -]+", IMAGE, re.MULTILINE))
    installed = {word for line in packages for word in line.split()}
    needed = set(re.findall(r"install --yes --no-install-recommends ([^&]*[\w+])", product))
    assert {word for line in needed for word in line.split()} <= installed
    assert {"chromium", "iproute2", "qemu-user-static", "binutils-aarch64-linux-gnu"} <= installed


def test_editors_indent_as_the_formatters_do() -> None:
    sections = re.split(r"^\[", (ROOT / ".editorconfig").read_text(), flags=re.MULTILINE)
    lengths = {
        section.partition("]")[0]: int(length)
        for section in sections
        for length in re.findall(r"^max_line_length = (\d+)$", section, re.MULTILINE)
    }
    biome = json.loads((ROOT / "service" / "dashboard" / "biome.json").read_text())
    ruff = re.search(r"^line-length = (\d+)$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert ruff is not None
    assert lengths == {"*.py": int(ruff[1]), "service/dashboard/src/**.{css,ts,tsx}": biome["formatter"]["lineWidth"]}
