"""The commands of the checkout: runnable from anywhere, quick the second time, clear when they cannot go on."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
COMMANDS = [*sorted(file for file in (ROOT / "scripts").iterdir() if file.suffix == ""), ROOT / ".ci" / "run"]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The set-up program, pointed at an empty checkout."""
    spec = importlib.util.spec_from_file_location("setup_checkout", ROOT / "scripts" / "setup_checkout.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    return module


@pytest.mark.parametrize("script", COMMANDS, ids=lambda path: path.name)
def test_command_is_executable_and_parses(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script.read_text()
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_setup_says_which_python_is_needed(tmp_path: Path) -> None:
    for name in ("dirname", "bash"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    lone = tmp_path / "checkout" / "scripts"
    lone.mkdir(parents=True)
    (lone / "setup").write_text((ROOT / "scripts" / "setup").read_text())
    old = tmp_path / "python3"
    old.write_text("#!/usr/bin/env bash\n[[ $1 == --version ]] && echo 'Python 3.9.2' && exit 0\nexit 1\n")
    old.chmod(0o755)
    command = ["bash", str(lone / "setup")]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Python 3.11" in done.stderr
    assert "this machine has Python 3.9.2" in done.stderr


def test_digest_follows_contents_names_and_facts(setup: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    first = setup.digest([file], "x")
    assert setup.digest([file], "x") == first
    assert setup.digest([file], "y") != first
    file.write_text("two")
    assert setup.digest([file], "x") != first
    renamed = file.rename(tmp_path / "b").parent / "b"
    renamed.write_text("one")
    assert setup.digest([renamed], "x") != first


def test_failed_step_shows_its_errors_and_the_advice(setup: ModuleType, tmp_path: Path) -> None:
    noisy = "print('noise'); print('ERROR: no such host'); raise SystemExit(3)"
    with pytest.raises(setup.SetupError) as failure:
        setup.run("fetching", [sys.executable, "-c", noisy], advice="Is there a network?", cwd=tmp_path)
    assert "exit status 3" in str(failure.value)
    assert "ERROR: no such host" in str(failure.value)
    assert "noise" not in str(failure.value)
    assert str(failure.value).endswith("Is there a network?")


def test_current_dashboard_is_not_built_again(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dashboard = tmp_path / "dashboard"
    monkeypatch.setattr(setup, "DASHBOARD", dashboard)
    (dashboard / "src").mkdir(parents=True)
    for name in ("package.json", "package-lock.json", "src/app.tsx"):
        (dashboard / name).write_text("{}")
    npm = tmp_path / ".venv" / "bin" / "npm"
    npm.parent.mkdir(parents=True)
    npm.write_text('#!/bin/sh\necho "$1 $2" >> ../calls\nmkdir -p node_modules dist\n')
    npm.chmod(0o755)
    calls = tmp_path / "calls"

    setup.build_dashboard()
    setup.build_dashboard()
    assert calls.read_text().split("\n")[:-1] == ["ci --ignore-scripts", "run build"]

    (dashboard / "src" / "app.tsx").write_text("changed")
    setup.build_dashboard()
    assert calls.read_text().split("\n")[2:-1] == ["run build"]
