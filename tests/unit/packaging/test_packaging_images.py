"""scripts/build-images builds the images of a commit, and says so in them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from loopwright.version import VERSION

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of its own with the script, beside a Docker that notes what it is given."""
    for name in ("scripts/build-images", "client/loopwright/version.py"):
        (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "checkout" / name)
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text('#!/bin/sh\necho "$@" >> "$(dirname "$0")/calls"\n')
    docker.chmod(0o755)
    commit = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org", "commit", "--quiet", "--message", "x"]
    for arguments in (["init", "--quiet"], ["add", "."], commit):
        subprocess.run(["git", *arguments], cwd=tmp_path / "checkout", check=True)
    return tmp_path / "checkout"


def build(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{checkout.parent / 'bin'}:{os.environ['PATH']}"}
    command = [str(checkout / "scripts" / "build-images"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_images_are_built_with_the_commit_and_pushed_where_asked(checkout: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True)
    given = f"--build-arg VERSION={VERSION} --build-arg REVISION={head.stdout.strip()} --build-arg SOURCE=somewhere"
    built = [
        f"build {given} --tag here/loopwright:{VERSION} .",
        f"build {given} --tag here/loopwright-gpu:{VERSION} --target gpu .",
    ]
    pushed = [f"push here/loopwright:{VERSION}", f"push here/loopwright-gpu:{VERSION}"]
    calls = checkout.parent / "bin" / "calls"
    assert build(checkout, "here", "somewhere").returncode == 0
    assert calls.read_text().splitlines() == built
    assert build(checkout, "--push", "here", "somewhere").returncode == 0
    assert calls.read_text().splitlines() == [*built, *built, *pushed]


def test_images_of_a_checkout_with_changes_are_refused(checkout: Path) -> None:
    (checkout / "new.py").touch()
    done = build(checkout, "here", "somewhere")
    assert done.returncode == 1
    assert "the checkout has changes" in done.stderr
    assert not (checkout.parent / "bin" / "calls").exists()
