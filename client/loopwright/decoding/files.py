"""A compiled decoder as a folder: a library for each program, and the weights of all of them, once. Needs TVM.

``decoder.json`` names the parts. The weights are one file, in which each tensor begins at a multiple of 64 bytes, as
TVM's programs require, so that they are used where the file is mapped into memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from loopwright.codegen.arrays import numpy_dtype
from loopwright.codegen.errors import UnsupportedVersion
from loopwright.packaging.exporting import export_library

MANIFEST, WEIGHTS = "decoder.json", "weights.bin"
_ALIGNMENT = 64
"""Bytes."""


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
    with (folder / WEIGHTS).open("wb") as file:
        offsets = []
        for tensor in places:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            offsets.append(file.tell())
            file.write(np.ascontiguousarray(tensor.numpy()).view(np.uint8).data)
    manifest = {
        "tvm": tvm.__version__,
        "programs": {length: [places[tensor] for tensor in each.weights] for length, each in programs.items()},
        "weights": [{**_form(tensor), "offset": offset} for tensor, offset in zip(places, offsets, strict=True)],
        "cache": [_form(tensor) for tensor in cache],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))


def read(folder: Path) -> tuple[dict[int, DecoderProgram], list[Any]]:
    """Return the programs that `write` wrote, and an empty cache.

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
    tensors = list(_mapped(folder / WEIGHTS, manifest["weights"]))
    programs = {
        int(length): DecoderProgram(tvm.runtime.load_module(str(folder / _library(length))), [tensors[n] for n in used])
        for length, used in manifest["programs"].items()
    }
    return programs, [empty(form["shape"], form["dtype"]) for form in manifest["cache"]]


def empty(shape: Sequence[int], dtype: str) -> Any:
    """Return zeros: a masked key counts nothing, but its value is multiplied by 0."""
    return tvm.runtime.tensor(np.zeros(shape, numpy_dtype(dtype)))


def _mapped(path: Path, forms: Iterable[Mapping[str, Any]]) -> Iterable[Any]:
    """Yield the tensors of a file of weights, in the memory into which it is mapped."""
    # Not "r": NumPy exports no memory by DLPack that may not be written. What is written stays in this process.
    memory = np.memmap(path, np.uint8, "c")
    for form in forms:
        dtype, shape = numpy_dtype(form["dtype"]), form["shape"]
        part = memory[form["offset"] : form["offset"] + int(np.prod(shape, dtype=int)) * dtype.itemsize]
        try:
            yield tvm.runtime.from_dlpack(part.view(dtype).reshape(shape))
        except BufferError:  # bfloat16, which NumPy does not export
            yield tvm.runtime.tensor(part.view(dtype).reshape(shape))


def _form(tensor: Any) -> dict[str, Any]:
    return {"shape": [int(extent) for extent in tensor.shape], "dtype": str(tensor.dtype)}


def _library(length: int | str) -> str:
    return f"{length}.so"
