"""A release is one commit and its tag: the version everywhere, and the changelog. What is wrong is refused before."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tarfile
from datetime import date
from email.parser import Parser
from pathlib import Path
from types import ModuleType

import pytest

from loopwright.version import VERSION

ROOT = Path(__file__).parents[3]
DAY = date(2030, 1, 31)
NEXT = "7.8.9"
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Something new.

## [0.2.0] - 2029-12-24

- Something old.
"""


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_release", ROOT / "scripts" / "make_release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_release = loaded()


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that state the version, and a changelog."""
    for name in make_release.STATED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    for key, value in {"user.name": "Someone", "user.email": "someone@example.org", "core.hooksPath": "/none"}.items():
        git(tmp_path, "config", key, value)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    return tmp_path


@pytest.mark.parametrize("version", [VERSION, NEXT])
def test_a_release_is_a_commit_and_its_tag(checkout: Path, version: str) -> None:
    changelog = checkout / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("0.2.0", "0.0.9"))
    git(checkout, "commit", "--quiet", "--all", "--message", "Begin earlier")
    assert make_release.release(checkout, version, DAY) == f"v{version}"
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "log", "-1", "--format=%s") == f"Release {version}"
    assert git(checkout, "tag", "--points-at", "HEAD") == f"v{version}"
    assert make_release.current_version(checkout) == version
    assert make_release.notes_of_checkout(checkout) == "### Added\n\n- Something new.\n"


def test_the_changelog_begins_anew(checkout: Path) -> None:
    make_release.release(checkout, NEXT, DAY)
    heading = f"## [Unreleased]\n\n## [{NEXT}] - 2030-01-31\n\n### Added\n"
    assert (checkout / "CHANGELOG.md").read_text() == CHANGELOG.replace("## [Unreleased]\n\n### Added\n", heading)


def test_a_release_changes_the_version_in_every_file_that_states_it() -> None:
    """All of the repository's own mentions: a version of a dependency may be the same."""
    texts = make_release.restated(ROOT, VERSION, NEXT)
    own = re.compile(rf"(?:loopwright(?:-gpu)?:|newTag: |^VERSION = \"){re.escape(VERSION)}\b", re.MULTILINE)
    tracked = git(ROOT, "ls-files", "*.md", "*.py", "*.toml", "*.yaml", "*.yml", "*.json", "Dockerfile").splitlines()
    stating = {name for name in tracked if own.search((ROOT / name).read_text())}
    assert stating <= texts.keys()
    assert not [name for name, text in texts.items() if own.search(text)]
    for name, text in texts.items():
        before = (ROOT / name).read_text().splitlines()
        changed = [(old, new) for old, new in zip(before, text.splitlines(), strict=True) if old != new]
        assert changed
        assert all(new == old.replace(VERSION, NEXT) for old, new in changed)


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "01.2.3"])
def test_what_is_no_version_is_refused(checkout: Path, version: str) -> None:
    with pytest.raises(make_release.ReleaseError, match=r"three numbers"):
        make_release.release(checkout, version, DAY)


def test_a_version_that_is_not_later_is_refused(checkout: Path) -> None:
    with pytest.raises(make_release.ReleaseError, match=r"0\.1\.9 is not later than 0\.2\.0"):
        make_release.release(checkout, "0.1.9", DAY)


def test_a_tag_is_not_made_again(checkout: Path) -> None:
    git(checkout, "tag", f"v{NEXT}")
    with pytest.raises(make_release.ReleaseError, match=rf"the tag v{NEXT} exists"):
        make_release.release(checkout, NEXT, DAY)


def test_nothing_is_released_twice(checkout: Path) -> None:
    make_release.release(checkout, NEXT, DAY)
    with pytest.raises(make_release.ReleaseError, match=r"no entries under ## \[Unreleased\]"):
        make_release.release(checkout, "8.0.0", DAY)


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.txt"])
def test_a_checkout_with_changes_is_refused_and_named(checkout: Path, name: str) -> None:
    with (checkout / name).open("a") as file:
        file.write("more\n")
    with pytest.raises(make_release.ReleaseError, match=rf"the checkout has changes(.|\n)*{re.escape(name)}"):
        make_release.release(checkout, NEXT, DAY)


def test_a_file_that_states_another_version_is_named_and_nothing_is_written(checkout: Path) -> None:
    (checkout / "docker-compose.yml").write_text("services: {}\n")
    git(checkout, "commit", "--quiet", "--all", "--message", "Forget the version")
    with pytest.raises(make_release.ReleaseError, match=r"docker-compose\.yml does not state version"):
        make_release.release(checkout, NEXT, DAY)
    assert git(checkout, "status", "--porcelain") == ""


def test_notes_are_refused_where_the_tag_is_of_another_version(checkout: Path) -> None:
    git(checkout, "tag", f"v{NEXT}")
    with pytest.raises(make_release.ReleaseError, match=rf"tag v{NEXT}, but its code is {re.escape(VERSION)}"):
        make_release.notes_of_checkout(checkout)


def test_notes_of_an_earlier_version_end_with_its_section() -> None:
    assert make_release.release_notes(CHANGELOG, "0.2.0") == "- Something old.\n"
    assert make_release.release_notes(CHANGELOG, "0.3.0") == "### Added\n\n- Something new.\n"


def test_the_changelog_of_the_repository_can_be_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{NEXT}] - 2030-01-31" in make_release.released_changelog(text, NEXT, DAY)


def test_code_that_is_not_installed_knows_its_version() -> None:
    """As in the image, which has no metadata of packages that it did not install."""
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'client')!r}); import loopwright; print(loopwright.__version__)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, VERSION), done.stderr


@pytest.mark.whole
def test_a_source_distribution_outside_of_a_repository_has_the_version_and_makes_the_wheel(tmp_path: Path) -> None:
    def build(kind: str, where: Path) -> Path:
        command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(tmp_path)]
        subprocess.run(command, cwd=where, check=True, capture_output=True)
        [path] = tmp_path.glob("*.whl" if kind == "wheel" else "*.tar.gz")
        return path

    with tarfile.open(build("sdist", ROOT)) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / f"loopwright-{VERSION}"
    assert Parser().parsestr((folder / "PKG-INFO").read_text())["Version"] == VERSION
    wheel = build("wheel", folder)
    assert wheel.name == f"loopwright-{VERSION}-py3-none-any.whl"
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *tmp_path.glob("loopwright-*.*[lz]")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.whl").touch()
    done = subprocess.run([ROOT / "scripts" / "build-dist", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not empty" in done.stderr


@pytest.mark.whole
def test_a_built_wheel_is_installed_and_used(tmp_path: Path) -> None:
    """Needs a package index."""
    done = subprocess.run([ROOT / "scripts" / "build-dist", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {file.name for file in tmp_path.iterdir()} == {"packages", "sbom", "notes.md"}
    assert f"loopwright {VERSION}: built and used" in done.stdout
