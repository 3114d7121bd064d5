"""API and controller do not run on tables that are older than they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from db import migrate


@pytest.mark.parametrize("role", ["api", "controller"])
def test_a_role_ends_on_old_tables_and_says_what_to_do(tmp_path: Path, role: str) -> None:
    migrate.upgrade(f"sqlite:///{tmp_path / 'loopwright.db'}", "0012")
    command = [sys.executable, "-m", "service", role, "--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "python -m service migrate" in line
