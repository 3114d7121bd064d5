"""Writing compiled programs as shared libraries, for this machine's architecture or for a board's. Needs TVM."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loopwright.codegen.host import pool
from loopwright.codegen.host.quiet import SCOPES, without_lines
from loopwright.codegen.program import linking
from loopwright.codegen.program.executable import Executable
from loopwright.codegen.target import target_from
from loopwright.errors import UnsupportedModel
from loopwright.packaging.load import ALIGNMENT, WEIGHTS

_LEAST_BYTES = 256 << 10
"""Of a weight that is written apart. A call takes some 0.05 µs longer for it, and 5 µs to read so many bytes."""


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


def export_apart(built: Executable, folder: Path) -> list[dict[str, Any]]:
    """Write ``model.so`` to a folder, and the large weights beside it, in a file that processes map into their memory.

    TVM's runtime copies what is in a library three times when it loads it.

    Returns:
        The shape and dtype of each weight, and its first byte in the file `WEIGHTS`; nothing if there is no such file.
    """
    executable, weights = built.with_weights_apart(_LEAST_BYTES)
    export_library(executable, folder / "model.so")
    if not weights:
        return []
    return [
        {"shape": tuple(map(int, tensor.shape)), "dtype": str(tensor.dtype), "first": first}
        for tensor, first in zip(weights, write_tensors(folder / WEIGHTS, weights), strict=True)
    ]


def write_tensors(file: Path, tensors: Iterable[Any]) -> list[int]:
    """Write tensors of TVM as they are in memory, and return the first byte of each, a multiple of `ALIGNMENT`."""
    places = []
    with file.open("wb") as written:
        for tensor in tensors:
            written.seek(-written.tell() % ALIGNMENT, os.SEEK_CUR)
            places.append(written.tell())
            written.write(np.ascontiguousarray(tensor.numpy()).view(np.uint8).data)
    return places


def write_threads(folder: Path) -> None:
    """Write the threads that run parallel loops as a library to a folder, if this machine has them."""
    if pool.is_available():
        pool.module().export_library(str(folder / pool.LIBRARY))
