"""Spares a run the tests that read files of the repository, if they passed with the same files before.

The digest of the files is kept in pytest's cache: each checkout has its own. Such tests run nevertheless with
`-m "whole or not whole"`, and if their folder or file is an argument of pytest.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ROOT = Path(__file__).parents[2]
INPUTS = {
    "tests/unit/docs": (
        *("*.md", "mkdocs.yml", ".dockerignore", "docker-compose.yml", "docs", "examples", "scripts", "deploy"),
        *("client", "service", "db", "benchmarks", "workers/host"),
    ),
    "tests/unit/packaging": (
        *("*.md", ".*", "Dockerfile", "docker-compose.yml", "docs", "deploy", "requirements", "scripts", "client"),
        *("db", "service/*.py", "service/dashboard/package*", "tuner/types.py", "tests/unit/docs"),
    ),
    "tests/unit/project": ("*.md", ".*", "Dockerfile", "scripts", "service/dashboard/biome.json", "tests/unit/docs"),
}
"""Git's pathspecs of what the tests of a folder read, besides themselves, `_SHARED` and the names of all files."""
_SHARED = ("tests/conftest.py", "tests/support", "pyproject.toml", "requirements/dev.txt")
_READ_ALL = ("tests/unit/packaging/test_packaging_house_rules.py", "tests/unit/project/test_project_recipes.py")
"""Tests of these folders that read every file, and are quick: they always run."""


def digest(folder: str) -> str | None:
    """Return a digest of the inputs of a folder, or None if git does not list them."""
    everything = _files()
    if everything is None:
        return None
    value = hashlib.sha256(repr((sys.version, everything)).encode())
    for name in _files(*INPUTS[folder], folder, *_SHARED) or ():
        path = ROOT / name
        value.update(hashlib.sha256(path.read_bytes() if path.is_file() else b"").digest())
    return value.hexdigest()


def _files(*pathspecs: str) -> list[str] | None:
    """Return the names of the tracked files, and of new ones that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", *pathspecs]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return sorted(filter(None, done.stdout.split("\0"))) if done.returncode == 0 else None


class Unchanged:
    """Deselects the tests of folders whose inputs are unchanged, and keeps the digests of those that passed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cache = getattr(config, "cache", None)
        self._digests = {folder: digest(folder) for folder in INPUTS if self._reached(folder)}
        expression = config.option.markexpr
        # An argument names a folder or a file to have its tests run.
        self.folders = [
            folder
            for folder, value in self._digests.items()
            if value and expression == "not whole" and not self._named(folder) and value == self._kept(folder)
        ]
        partial = ("keyword", "deselect", "lf", "stepwise")
        selects_all = expression in ("not whole", "whole or not whole")
        self._may_keep = selects_all and not any(config.getoption(name, None) for name in partial)
        self._due: set[str] = set()
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    def _arguments(self) -> list[Path]:
        return [(self._config.invocation_params.dir / each.partition("::")[0]).resolve() for each in self._config.args]

    def _reached(self, folder: str) -> bool:
        """Whether the arguments contain the whole folder."""
        return any((ROOT / folder).is_relative_to(path) for path in self._arguments())

    def _named(self, folder: str) -> bool:
        return any(path.is_relative_to(ROOT / folder) for path in self._arguments())

    def _kept(self, folder: str) -> str | None:
        return None if self._cache is None else self._cache.get(f"unchanged/{folder}", None)

    def pytest_report_header(self) -> str | None:
        return f"passed before with the same files, deselected: {', '.join(self.folders)}" if self.folders else None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        spared = [item for item in items if _folder(item.nodeid) in self.folders]
        if spared:
            config.hook.pytest_deselected(items=spared)
            items[:] = [item for item in items if _folder(item.nodeid) not in self.folders]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._due |= {item.nodeid for item in session.items}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: list[str]) -> None:
        self._due |= set(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if self._cache is None or not self._may_keep or hasattr(self._config, "workerinput"):
            return
        for folder, value in self._digests.items():
            due = {name for name in self._due if _folder(name) == folder}
            if value and due and due <= self._passed - self._failed:
                self._cache.set(f"unchanged/{folder}", value)


def _folder(nodeid: str) -> str | None:
    """Return the folder of `INPUTS` that a test is in, unless the test reads all files."""
    if nodeid.startswith(_READ_ALL):
        return None
    return next((folder for folder in INPUTS if nodeid.startswith(f"{folder}/")), None)
