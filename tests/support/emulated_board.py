"""A board of another architecture without the hardware: TVM's RPC server in user-space emulation by QEMU.

The board's files are packages of Debian and wheels of Python for arm64, unpacked into a folder. Nothing is installed,
and no rights are needed. Timings in an emulator mean nothing; results do.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from loopwright.codegen.versions import TVM_FFI_VERSION, TVM_VERSION
from tests.support.boards import ServedBoard

PACKAGES = ("python3", "libstdc++6")
WHEELS = (f"apache-tvm=={TVM_VERSION}", f"apache-tvm-ffi=={TVM_FFI_VERSION}", "numpy", "typing_extensions", "ml_dtypes")
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux2014_aarch64")
NEEDS = (
    "This test emulates an aarch64 board. It needs Debian's packages qemu-user-static and binutils-aarch64-linux-gnu, "
    "dpkg-deb and apt-get with a mirror that has arm64 (Debian's have), and a Python package index."
)


def aarch64_board(folder: Path) -> ServedBoard:
    """Return an emulated board whose files are in ``folder``, not started yet. Fails and says what is missing."""
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if emulator is None or shutil.which("aarch64-linux-gnu-ld") is None:
        pytest.fail(f"{NEEDS} There is no emulator, or no linker.")
    root = _root(folder)
    [python] = root.glob("usr/bin/python3.[0-9]*[0-9]")
    site = _wheels(folder, python.name.removeprefix("python"))
    return ServedBoard(
        folder,
        python=(emulator, "-L", str(root), str(python)),
        environment={"PYTHONHOME": str(root / "usr"), "PYTHONPATH": str(site), "PATH": "/usr/bin"},
        threads=2,
    )


def _root(folder: Path) -> Path:
    """Unpack Python for arm64 with what it depends on, by an apt that has a state of its own."""
    root, state = folder / "root", folder / "apt"
    for each in (root, state / "lists" / "partial", state / "cache" / "archives" / "partial"):
        each.mkdir(parents=True)
    (state / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "Acquire::Languages": "none",
    }
    apt = ["apt-get", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    _run([*apt, "update"])
    _run([*apt, "install", "--yes", "--download-only", "--no-install-recommends", *PACKAGES])
    for package in (state / "cache" / "archives").glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(package), str(root)])
    return root


def _wheels(folder: Path, version: str) -> Path:
    wheels, site = folder / "wheels", folder / "site"
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    options = ["--no-deps", "--only-binary=:all:", "--python-version", version, *platforms, "--dest", str(wheels)]
    _run([sys.executable, "-m", "pip", "download", *options, *WHEELS])
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return site


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{NEEDS} {command[0]} failed: {done.stderr.strip()[-1000:]}")
