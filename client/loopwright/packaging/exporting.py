"""Writing compiled programs as shared libraries, for this machine's architecture or for a board's. Needs TVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loopwright.codegen.host import pool
from loopwright.codegen.host.quiet import SCOPES, without_lines
from loopwright.codegen.program import linking
from loopwright.codegen.target import target_from
from loopwright.errors import UnsupportedModel


def export_library(built: Any, path: str | os.PathLike[str], target: Any = "auto") -> None:
    """Write what `Client.compile` returned as a shared library, which TVM's runtime loads.

    TVM's own ``built.export_library`` links with this machine's compiler, and fails for another architecture; this
    function takes a linker for it: ``aarch64-linux-gnu-ld``, or ``ld.lld``.

    Args:
        built: what `Client.compile` returned.
        path: the file to write.
        target: what it was compiled for.

    Raises:
        UnsupportedModel: there is no such linker; the message says what to install.
    """
    found = None if isinstance(target, str) and target.strip() == "auto" else target_from(target)
    if found is None or found.kind.name != "llvm" or not linking.is_foreign(found):
        with without_lines(SCOPES):
            built.export_library(os.fspath(path))
        return
    program = linking.linker(found)
    if program is None:
        raise UnsupportedModel(
            f"there is no linker for {linking.machine(found)} on this machine; {linking.linker_packages(found)}"
        )

    def link(output: str, objects: Sequence[str]) -> None:
        linking.link(program, objects, output)

    with without_lines(SCOPES):
        built.export_library(os.fspath(path), fcompile=link)


def write_threads(folder: Path) -> None:
    """Write the threads that run parallel loops as a library to a folder, if this machine has them."""
    if pool.is_available():
        pool.module().export_library(str(folder / pool.LIBRARY))
