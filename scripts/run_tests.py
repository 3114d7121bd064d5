"""Run the checks and the tests of the checkout one after another, and add up the processor time that they take.

The round has a limit of processor time, not of wall time: on a busy machine, the wall time says little about the tests.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUND_LIMIT_SECONDS = 90 * 60
"""Processor time of a round: three quarters of an hour of two cores of a slow machine.

The same tests took from 1,300 s to 1,952 s, since processors that share caches and memory slow each other, and 3,764 s
where all tests alike took 2.4 times as long.
"""
SECONDS = "tests/seconds.txt"
_PR_SET_CHILD_SUBREAPER = 36
_NO_SOURCE_ANSWERED = 3
"""Status of scripts/audit if no advisory source could be asked. Many machines reach none."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Children:
    """Starts the steps, and reaps their descendants too: the processor time of a process counts once it is reaped.

    A descendant that outlives its parent, as a daemon of Ray does, becomes a child of this process.
    """

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._exit_statuses: dict[int, int] = {}

    def start(self, command: Sequence[str], output: Path | None = None) -> int:
        """Start a command in the checkout, and return its process ID. Its output goes to a file if one is given."""
        if output is None:
            return subprocess.Popen(command, cwd=ROOT).pid
        with output.open("wb") as file:
            return subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT).pid

    def wait(self, pid: int) -> int:
        """Return the exit status of a started command, once it has ended."""
        while pid not in self._exit_statuses:
            ended, status = os.waitpid(-1, 0)
            self._exit_statuses[ended] = os.waitstatus_to_exitcode(status)
        return self._exit_statuses.pop(pid)

    def run(self, *command: str) -> bool:
        """Run a command and return whether it succeeded."""
        return self.wait(self.start(command)) == 0

    def cpu_seconds(self) -> float:
        """Return the processor time of all descendants that have ended."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


class Steps:
    """Prints how each step ended and how long it took."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def begin(self, name: str) -> float:
        print(f"== {name}", flush=True)
        return time.monotonic()

    def end(self, name: str, started: float, passed: bool) -> None:
        if not passed:
            self.failed.append(name)
        print(f"== {name}: {'passed' if passed else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/test", description="Run the round; other arguments go to pytest.")
    parser.add_argument("--all", action="store_true", dest="whole", help="run the whole: every test, and scripts/audit")
    parser.add_argument("--renew-seconds", action="store_true", help=f"write the seconds by module to {SECONDS}")
    return parser


def main() -> int:
    options, selection = parser().parse_known_args()
    os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    children, steps, began = Children(), Steps(), time.monotonic()

    started = steps.begin("browser")
    steps.end("browser", started, _has_browser(children))
    # mypy takes one core while the other quick checks take another.
    types_started, types = time.monotonic(), Path(tempfile.mkdtemp()) / "mypy"
    mypy = children.start(["mypy"], types)
    checks = {
        "ruff check": ["ruff", "check", "."],
        "ruff format": ["ruff", "format", "--check", "."],
        "import rule": ["lint-imports"],
        "dashboard": ["npm", "--prefix", "service/dashboard", "run", "check"],
    }
    for name, command in checks.items():
        started = steps.begin(name)
        steps.end(name, started, children.run(*command))
    if options.whole:
        started = steps.begin("audit")
        steps.end("audit", started, _audited(children))
    steps.begin("mypy")
    typed = children.wait(mypy) == 0
    print(types.read_text())
    shutil.rmtree(types.parent)
    steps.end("mypy", types_started, typed)
    started = steps.begin("pytest")
    steps.end("pytest", started, children.run(*_pytest(options, selection)))

    minutes = (time.monotonic() - began) / 60
    print(f"{minutes:.1f} minutes, {children.cpu_seconds():.0f} s of processor time")
    if not options.whole and not selection and children.cpu_seconds() > ROUND_LIMIT_SECONDS:
        steps.failed.append(
            f"the round took more than {ROUND_LIMIT_SECONDS} s of processor time: make tests of the slowest modules "
            "in the table above cheaper, or mark them `whole`"
        )
    for name in steps.failed:
        print(f"FAILED: {name}", file=sys.stderr)
    if not steps.failed:
        print("All passed.")
    return 1 if steps.failed else 0


def _pytest(options: argparse.Namespace, selection: list[str]) -> list[str]:
    tests = [sys.executable, "-m", "pytest", "--order-seed", str(random.randrange(32768))]
    if options.whole:
        tests += ["-m", "whole or not whole"]
    if options.renew_seconds:
        tests.append(f"--seconds-table={SECONDS}")
    # Two processes. A test that measures has the machine to itself (client/loopwright/codegen/host/lock.py).
    return [*tests, *(selection or ["-n", "2", "--dist", "loadscope", "--no-loadscope-reorder"])]


def _has_browser(children: Children) -> bool:
    """Find or install the browser that the tests drive."""
    if _browser_found():
        return True
    if os.geteuid() == 0 and shutil.which("apt-get"):
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        children.run("apt-get", "-qq", "update")
        children.run("apt-get", "-qq", "install", "-y", "chromium")
    if _browser_found():
        return True
    print(
        "The browser tests need Chromium: install your system's package, "
        "or run .venv/bin/playwright install --with-deps chromium.",
        file=sys.stderr,
    )
    return False


def _browser_found() -> bool:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ms-playwright"
    return any(map(shutil.which, _BROWSERS)) or any(cache.glob("chromium*"))


def _audited(children: Children) -> bool:
    """Audit the locked packages. It is no failure if no source could be asked, but it is printed."""
    status = children.wait(children.start(["scripts/audit"]))
    if status == _NO_SOURCE_ANSWERED:
        print("NOT AUDITED: an advisory source could not be asked.")
    return status in (0, _NO_SOURCE_ANSWERED)


if __name__ == "__main__":
    sys.exit(main())
