"""A wrong TVM, or walls that are required and cannot be, is a clear error where the service and its children start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.codec import encode
from workers.walls.enclosure import Enclosure
from workers.walls.levels import Level

START_SERVICE = "from service.__main__ import main; main()"
ENCLOSURE = json.dumps(encode(Enclosure(Level.NONE, (), (), programs=False)))
START_CHILD = "from workers.child.program import main; main()"


@pytest.mark.parametrize(
    ("start", "arguments"),
    [(START_SERVICE, ["migrate"]), (START_CHILD, ["0", "1", ENCLOSURE, "tvm"])],
    ids=["service", "child"],
)
def test_another_tvm_is_refused_at_the_start(start: str, arguments: list[str], tmp_path: Path) -> None:
    code = f"from loopwright.codegen import versions; versions.PINS['apache-tvm'] = '9.9'; {start}"
    environment = {**os.environ, "LOOPWRIGHT_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'apache-tvm==9.9'" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "role", [pytest.param([], id="service", marks=pytest.mark.whole), pytest.param(["api"], id="api")]
)
def test_without_the_walls_that_are_required_nothing_starts(role: list[str], tmp_path: Path) -> None:
    reasons = "{levels.Level.NAMESPACES: 'forbidden', levels.Level.LANDLOCK: 'too old'}"
    code = f"from workers.walls import levels; levels.obstacles = lambda: {reasons}; {START_SERVICE}"
    command = [sys.executable, "-c", code, *role, "--data-dir", str(tmp_path), "--sandbox", "require"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("loopwright: ")
    assert "namespaces: forbidden; landlock: too old" in done.stderr
    assert "Traceback" not in done.stderr
