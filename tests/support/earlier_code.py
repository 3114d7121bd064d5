"""The code of this repository as it was before its newest migration."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from db import migrate
from tests.support.service import ROOT

_VERSIONS = "db/migrations/versions"


def unpack_earlier(folder: Path) -> None:
    """Unpack the newest commit whose code does not know the newest migration. Fails if there is no history."""
    commit = _git("rev-parse", "--verify", f"{_adding_commit()}^").decode().strip()
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as code:
        code.extractall(folder, filter="data")


def _adding_commit() -> str:
    (path,) = (ROOT / _VERSIONS).glob(f"{migrate.head()}_*.py")
    added = _git("log", "--diff-filter=A", "--format=%H", "--", str(path.relative_to(ROOT))).decode().split()
    assert added, f"{path.name} is in no commit: commit it to test an upgrade to it"
    return added[-1]


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    message = f"the history of the repository is needed, in a full clone: git {words[0]}: {done.stderr.decode()}"
    assert done.returncode == 0, message
    return done.stdout
