"""Linking of object code into a shared library, for this machine's architecture or for another one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from tvm.target import Target, codegen

from loopwright.codegen.target import triple


def is_foreign(target: Target) -> bool:
    """Return whether code for an llvm target is for another architecture than this machine's."""
    return machine(target) != codegen.llvm_get_system_triple().split("-")[0]


def machine(target: Target) -> str:
    """Return the architecture of an llvm target as its triple names it, ``aarch64`` for one."""
    return triple(target).split("-")[0]


def linker(target: Target) -> str | None:
    """Return the path of a linker for an llvm target; None if none is installed.

    For another architecture it is GNU's linker for it, or LLVM's, which links for all of them.
    """
    if not is_foreign(target):
        return shutil.which("ld")
    return shutil.which(f"{machine(target)}-linux-gnu-ld") or shutil.which("ld.lld")


def linker_packages(target: Target) -> str:
    """Return what to install if there is no linker for another architecture, in the names of Debian's packages."""
    return f"install binutils-{machine(target).replace('_', '-')}-linux-gnu, or lld"


def link(program: str, objects: Sequence[str], output: str, *options: str) -> None:
    """Link objects into a shared library by the linker at the path ``program``. Raises CalledProcessError."""
    subprocess.run([program, "-shared", *options, "-o", output, *objects], check=True, stdin=subprocess.DEVNULL)
