"""``scripts/release``: write a version and the changelog's heading, commit them, and tag the commit.

Nothing is written before everything has been checked. Nothing is sent: pushing the tag is what starts a release.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = "client/loopwright/version.py"
STATED = {
    VERSION_FILE: r'(?<=^VERSION = "){}(?="$)',
    "service/dashboard/package.json": r'(?<=^  "version": "){}(?=",$)',
    "service/dashboard/package-lock.json": r'(?:(?<=^  "version": ")|(?<=^      "version": ")){}(?=",$)',
    "Dockerfile": r"(?<=^ARG VERSION=){}$",
    "docker-compose.yml": r"(?:(?<=image: loopwright:)|(?<=image: loopwright-gpu:)){}$",
    "deploy/kubernetes/api.yaml": r"(?<=image: loopwright:){}$",
    "deploy/kubernetes/controller.yaml": r"(?<=image: loopwright:){}$",
    "deploy/kubernetes/kustomization.yaml": r"(?<=newTag: ){}$",
    "deploy/kubernetes/migrate.yaml": r"(?<=image: loopwright:){}$",
    "deploy/kubernetes/ray.yaml": r"(?:(?<=image: loopwright:)|(?<=image: loopwright-gpu:)){}$",
    "docs/operations.md": r"(?:(?<=/loopwright:)|(?<=/loopwright-gpu:)){}(?= )",
}
"""File -> how the version is written in it; ``{}`` stands for the version."""
UNRELEASED = "## [Unreleased]"


class ReleaseError(Exception):
    """There is nothing to release like this; the message says what to do."""


def numbers(version: str) -> tuple[int, ...]:
    """Return the three numbers of a version.

    Raises:
        ReleaseError: It is not X.Y.Z.
    """
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        raise ReleaseError(f"{version!r} is no version: give three numbers without a prefix, such as 0.2.0")
    return tuple(map(int, version.split(".")))


def released_changelog(text: str, version: str, day: date) -> str:
    """Return the changelog with what is unreleased under a heading of ``version``, and an empty section above it.

    Raises:
        ReleaseError: Nothing is unreleased, or ``version`` is not later than all that have a heading.
    """
    head, heading, rest = text.partition(f"\n{UNRELEASED}\n")
    entries = rest.partition("\n## ")[0]
    if not heading or not re.search(r"^- ", entries, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no entries under {UNRELEASED}: describe there what users will notice")
    last = max(re.findall(r"^## \[(\d+\.\d+\.\d+)\]", rest, re.MULTILINE), key=numbers, default=None)
    if last is not None and numbers(version) <= numbers(last):
        raise ReleaseError(f"{version} is not later than {last}, which CHANGELOG.md lists as released")
    return f"{head}{heading}\n## [{version}] - {day.isoformat()}\n{rest}"


def release_notes(text: str, version: str) -> str:
    """Return what the changelog says about ``version``, or what is unreleased if it has no heading of its own."""
    for title in (rf"## \[{re.escape(version)}\][^\n]*", re.escape(UNRELEASED)):
        if section := re.search(rf"^{title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
            return section[1].strip() + "\n"
    raise ReleaseError(f"CHANGELOG.md has neither {version} nor {UNRELEASED}")


def restated(root: Path, old: str, new: str) -> dict[str, str]:
    """Return the new text of each file that states the version.

    Raises:
        ReleaseError: A file does not state ``old``.
    """
    texts = {}
    for name, pattern in STATED.items():
        text = (root / name).read_text()
        # The version of the package itself comes before those of its dependencies in npm's lock.
        limit = 2 if name.endswith("package-lock.json") else 0
        expression = re.compile(pattern.format(re.escape(old)), re.MULTILINE)
        texts[name], count = expression.subn(new, text, count=limit)
        if not count:
            raise ReleaseError(f"{name} does not state version {old}: mend it, or STATED in scripts/make_release.py")
    return texts


def release(root: Path, version: str, day: date) -> str:
    """Commit and tag a release, and return the name of the tag.

    Raises:
        ReleaseError: The checkout has changes that are not committed, or the tag exists, or see the functions above.
    """
    numbers(version)
    tag = f"v{version}"
    if changes := git(root, "status", "--porcelain"):
        raise ReleaseError(f"the checkout has changes: commit them or put them away first\n{changes}")
    if git(root, "tag", "--list", tag):
        raise ReleaseError(f"the tag {tag} exists: a released version is not made again; take the next one")
    texts = {"CHANGELOG.md": released_changelog((root / "CHANGELOG.md").read_text(), version, day)}
    texts |= restated(root, current_version(root), version)
    for name, text in texts.items():
        (root / name).write_text(text)
    git(root, "add", *texts)
    git(root, "commit", "--quiet", "--message", f"Release {version}")
    git(root, "tag", "--annotate", "--message", f"Loopwright {version}", tag)
    return tag


def current_version(root: Path) -> str:
    """Return the version that the code states."""
    stated = re.search(r'^VERSION = "(.*)"$', (root / VERSION_FILE).read_text(), re.MULTILINE)
    if stated is None:
        raise ReleaseError(f'{VERSION_FILE} has no line VERSION = "…"')
    return stated[1]


def notes_of_checkout(root: Path) -> str:
    """Return the release notes of the version that the code states.

    Raises:
        ReleaseError: The commit has a release's tag, and none of this version.
    """
    version = current_version(root)
    tags = git(root, "tag", "--points-at", "HEAD", "--list", "v*").split()
    if tags and f"v{version}" not in tags:
        raise ReleaseError(f"the commit has the tag {tags[0]}, but its code is {version}: tag with scripts/release")
    return release_notes((root / "CHANGELOG.md").read_text(), version)


def git(root: Path, *arguments: str) -> str:
    """Return what git prints.

    Raises:
        ReleaseError: It fails.
    """
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.rstrip()


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/release", description="Commit and tag a release; push nothing.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("version", metavar="X.Y.Z", nargs="?", help="later than all versions that CHANGELOG.md lists")
    what.add_argument("--notes", action="store_true", help="make nothing; print the release notes of this checkout")
    return parser


def main() -> int:
    options = parser().parse_args()
    try:
        if options.notes:
            print(notes_of_checkout(ROOT), end="")
            return 0
        tag = release(ROOT, options.version, datetime.now(UTC).date())
    except ReleaseError as error:
        print(f"loopwright: {error}", file=sys.stderr)
        return 1
    print(f"Committed and tagged {tag}. Look at it with git show, then push the branch and the tag.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
