"""What the service keeps on disk is its user's alone."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from tests.support.service import Service

SHARED = stat.S_IRWXG | stat.S_IRWXO


def test_others_cannot_enter_the_data_directory(service: Service) -> None:
    assert stat.S_IMODE(service.data_dir.stat().st_mode) & SHARED == 0


def test_others_cannot_reach_rays_sockets(service: Service) -> None:
    """Ray makes its session's folder writable for everybody."""
    sessions = {
        Path(found)
        for process in service.note_processes()
        if process.name() == "raylet"
        for found in re.findall(r"(/\S+/session_[\d_-]+)", " ".join(process.cmdline()))
    }
    assert sessions
    for session in sessions:
        assert any(stat.S_IMODE(folder.stat().st_mode) & SHARED == 0 for folder in session.parents), session
