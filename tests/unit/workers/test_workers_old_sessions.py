"""Ray's folders of sessions that have ended go, but for the last few."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from workers.ray.old_sessions import remove_old_sessions


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_old_sessions_are_removed_and_others_are_not(tmp_path: Path) -> None:
    ended = ended_process()
    names = [f"session_2026-11-2{day}_10-00-00_123456_{ended}" for day in range(5)]
    running = f"session_2020-01-01_10-00-00_123456_{os.getpid()}"
    other = "session_of_somebody"
    for name in [*names, running, other]:
        (tmp_path / name / "logs").mkdir(parents=True)
        (tmp_path / name / "logs" / "raylet.out").write_text("text")
    (tmp_path / "session_latest").symlink_to(tmp_path / names[-1])
    remove_old_sessions(tmp_path, kept=2)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*names[-2:], running, other, "session_latest"}


def test_a_first_start_has_nothing_to_remove(tmp_path: Path) -> None:
    remove_old_sessions(tmp_path / "ray")
    assert not (tmp_path / "ray").exists()
