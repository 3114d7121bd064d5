"""Build the documentation site."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def build(repository: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as the image does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    environment = {"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin", "PYTHONPATH": "client"}
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
