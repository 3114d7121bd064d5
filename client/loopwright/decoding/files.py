"""A compiled decoder as a folder: a library for each program, and the weights of all of them, once. Needs TVM.

``decoder.json`` names the parts. The weights are one file, as they are in memory (`loopwright.decoding.memory`): the
file can be mapped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.decoding import memory
from loopwright.decoding.memory import Form
from loopwright.packaging.exporting import export_library, write_tensors
from loopwright.packaging.load import WEIGHTS

MANIFEST = "decoder.json"


@dataclass(frozen=True, slots=True)
class DecoderProgram:
    """A program of a decoder: a ``relax.VMExecutable`` or a loaded library, and the tensors it takes as its last
    arguments."""

    executable: Any
    weights: Sequence[Any]


def write(folder: Path, programs: Mapping[int, DecoderProgram], cache: Sequence[Any]) -> None:
    """Write programs by their number of tokens, their weights, and the form of the cache.

    Raises:
        FileExistsError: the folder is not empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; give a folder of its own for the decoder")
    places: dict[Any, int] = {}
    for length, program in programs.items():
        export_library(program.executable, folder / _library(length))
        for tensor in program.weights:
            places.setdefault(tensor, len(places))
    write_tensors(folder / WEIGHTS, places)
    manifest = {
        "tvm": tvm.__version__,
        "programs": {length: [places[tensor] for tensor in each.weights] for length, each in programs.items()},
        "weights": [asdict(Form.of(tensor)) for tensor in places],
        "cache": [asdict(Form.of(tensor)) for tensor in cache],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))


def read(folder: Path, *, shared: bool) -> tuple[dict[int, DecoderProgram], list[Any]]:
    """Return the programs that `write` wrote, and an empty cache.

    Args:
        folder: the folder.
        shared: whether the weights are where the file is mapped into memory, instead of a copy in huge pages.

    Raises:
        FileNotFoundError: the folder contains no decoder.
        UnsupportedVersion: another version of TVM wrote it.
    """
    manifest = json.loads((folder / MANIFEST).read_text())
    if manifest["tvm"] != tvm.__version__:
        raise UnsupportedVersion(
            f"{folder} was written with TVM {manifest['tvm']}, and this is TVM {tvm.__version__}; compile the decoder "
            "again"
        )
    # Not "r": NumPy exports no memory by DLPack that may not be written. What is written stays in this process.
    stored: memory.Bytes = np.memmap(folder / WEIGHTS, np.uint8, "c")
    if not shared:
        mapped, stored = stored, memory.huge_pages(stored.size)
        stored[:] = mapped
    tensors = memory.tensors(stored, _forms(manifest["weights"]))
    programs = {
        int(length): DecoderProgram(tvm.runtime.load_module(str(folder / _library(length))), [tensors[n] for n in used])
        for length, used in manifest["programs"].items()
    }
    return programs, memory.zeros(_forms(manifest["cache"]))


def _forms(stored: Sequence[Mapping[str, Any]]) -> list[Form]:
    return [Form(tuple(form["shape"]), form["dtype"]) for form in stored]


def _library(length: int | str) -> str:
    return f"{length}.so"
