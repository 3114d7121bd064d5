"""The round spares only tests that passed with the same files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.support import unchanged
unchanged.ROOT = Path(__file__).parents[1]
unchanged.INPUTS = {{"tests/unit/docs": ("docs",)}}
def pytest_configure(config):
    config.pluginmanager.register(unchanged.Unchanged(config))
"""
FILES = {
    "pytest.ini": "[pytest]\naddopts = -m 'not whole' --import-mode=importlib\nmarkers = whole: x",
    ".gitignore": "__pycache__\n.pytest_cache\n",
    "docs/page.md": "right",
    "tests/conftest.py": CONFTEST,
    "tests/test_other.py": "def test_it(): pass",
    "tests/unit/docs/test_page.py": """
def test_page():
    assert open("docs/page.md").read() == "right"
def test_it(): pass
""",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def ran(checkout: Path, *words: str) -> dict[str, int]:
    """Return the counts of pytest's last line."""
    command = [sys.executable, "-m", "pytest", *words]
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=checkout, env=os.environ | plugins, capture_output=True, text=True, check=False)
    counts = re.findall(r"(\d+) (passed|failed|deselected)", done.stdout.splitlines()[-1])
    return {outcome: int(count) for count, outcome in counts}


@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "2"), marks=pytest.mark.whole)], ids=["one", "two"])
def test_tests_run_again_only_if_a_file_changed_or_they_did_not_pass(
    checkout: Path, processes: tuple[str, ...]
) -> None:
    page = checkout / "docs" / "page.md"
    assert ran(checkout, *processes, "tests", "--deselect", "tests/unit/docs/test_page.py::test_it")["passed"] == 2
    assert ran(checkout, *processes, "tests")["passed"] == 3
    assert ran(checkout, *processes, "tests")["passed"] == 1
    assert ran(checkout, *processes, "tests", "-m", "whole or not whole")["passed"] == 3
    assert ran(checkout, *processes, "tests/unit/docs/test_page.py")["passed"] == 2
    page.write_text("wrong")
    for _ in range(2):
        assert ran(checkout, *processes, "tests") == {"passed": 2, "failed": 1}
    page.write_text("right")  # as when they passed
    assert ran(checkout, *processes, "tests")["passed"] == 1
    (checkout / "new.md").touch()
    assert ran(checkout, *processes, "tests")["passed"] == 3
