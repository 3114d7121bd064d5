"""The documentation site, built from what the image copies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.docs.documents import ROOT
from tests.unit.docs.site import build

MERMAID = Path("service/dashboard/node_modules/@mermaid-js")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an image is built from: the files of the repository that .dockerignore lets through."""
    copy = tmp_path_factory.mktemp("repository")
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        for source in ROOT.glob(line[1:]) if line.startswith("!") else ():
            if source.is_dir():
                built = ("results",) if source.name == "benchmarks" else ("node_modules", "dist", "site")
                shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__", *built))
            else:
                shutil.copy(source, copy)
    shutil.copytree(ROOT / MERMAID, copy / MERMAID)
    return copy


@pytest.fixture(scope="module")
def site(repository: Path) -> Path:
    done = build(repository, folder := repository / "service" / "documentation" / "site")
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder
