"""Compiles a model for a cache in a process of its own, so that the process that serves stays small.

TVM's compiler, and PyTorch where it translates the model, take hundreds of megabytes that a process does not give back.
The parent sends a model that is a file, with its options, and gets an entry of the cache, or an error.
"""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, cast

import numpy as np

from loopwright import errors
from loopwright.compile_options import CompileOptions
from loopwright.frontends import onnx, torch
from loopwright.jobs.targets import on_wire
from loopwright.locking.lock import Lock
from loopwright.model import Model
from loopwright.schemas import Problem

_MODULE = "loopwright.cli.compiling"
_FORMS = (".onnx", ".pt2")
_INPUTS, _PARAMS, _LOCK, _REST = "inputs.npz", "params.npz", "bests.lock", "rest.json"
"""Files by which a child is told."""
_KINDS = "biufc"
"""Of dtypes that a file of NumPy keeps: booleans, integers and floating-point numbers of 16 to 64 bits."""
_MOST_BYTES = 2**31
"""Of a model of ONNX in one file: a limit of protobuf."""
_OPTIONS = ("shapes", "exact_math", "math", "shares_weights", "int8_activations")


@dataclass(frozen=True)
class Work:
    """What `Client.compile` is called with, and the folder of the entry that is to be written."""

    source: Model
    options: CompileOptions
    entry: Path


def takes(source: Model, params: Mapping[str, Any] | None) -> bool:
    """Return whether a child can compile a model: files, and what can be written to one."""
    model = source.model
    if not all(_array(value).dtype.kind in _KINDS for value in (params or {}).values()):
        return False
    if isinstance(model, str | os.PathLike):
        return PurePath(model).suffix in _FORMS
    if torch.accepts(model):
        return True
    return onnx.accepts(model) and model.ByteSize() < _MOST_BYTES


def compile_in_child(work: Work, environment: Mapping[str, str]) -> None:
    """Write the entry. Raises what `Client.compile` raises in the child, and RuntimeError if the child dies.

    ``environment`` is what the child has beside this process's: where the service is.
    """
    with tempfile.TemporaryDirectory(prefix="loopwright-compile-") as folder:
        _write(work, Path(folder))
        done = subprocess.run(
            [sys.executable, "-m", _MODULE, folder],
            env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"the process that compiles the model ended with status {done.returncode}: {last}"[:500])
    if answer := json.loads(lines[-1]):
        raise _error(**answer)


def _error(kind: str, message: str, problem: dict[str, Any] | None) -> Exception:
    """Return the error of a child as one of this process."""
    found = vars(errors).get(kind) or vars(builtins).get(kind)
    if problem is not None:
        return cast(type[errors.ServiceError], found)(Problem.model_validate(problem))
    if kind in vars(errors) or found in (ValueError, TypeError, FileNotFoundError, PermissionError):
        return cast(type[Exception], found)(message)
    return RuntimeError(f"{kind}: {message}")


def _write(work: Work, folder: Path) -> None:
    """Write what the child reads: the model, unless it is a file already, arrays and the rest."""
    source = work.source
    path = Path(source.model) if isinstance(source.model, str | os.PathLike) else _saved(source.model, folder)
    inputs = source.example_inputs
    named = inputs if isinstance(inputs, Mapping) else {str(place): each for place, each in enumerate(inputs or ())}
    np.savez(folder / _INPUTS, **{name: _array(value) for name, value in named.items()})
    options = work.options
    np.savez(folder / _PARAMS, **{name: _array(value) for name, value in (options.params or {}).items()})
    if options.lock is not None:
        options.lock.write(folder / _LOCK)
    rest = {
        "model": str(path.absolute()),
        "options": {name: getattr(source, name) for name in _OPTIONS},
        "inputs": None if inputs is None else "by name" if isinstance(inputs, Mapping) else "in order",
        "target": on_wire(options.target),
        "verify": options.verify,
        "tune": options.tune,
        "entry": str(work.entry.absolute()),
    }
    (folder / _REST).write_text(json.dumps(rest), encoding="utf-8")


def _saved(model: Any, folder: Path) -> Path:
    if onnx.accepts(model):
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path
    path = folder / "model.pt2"
    sys.modules["torch"].export.save(model, path)
    return path


def _array(value: Any) -> Any:
    if hasattr(value, "detach"):
        return value.detach().numpy()
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def read(folder: Path) -> Work:
    """Return what a parent wrote."""
    rest = json.loads((folder / _REST).read_text(encoding="utf-8"))
    arrays = dict(np.load(folder / _INPUTS))
    inputs = {"by name": arrays, "in order": tuple(arrays.values())}.get(rest["inputs"])
    lock = folder / _LOCK
    options = CompileOptions(
        rest["target"],
        dict(np.load(folder / _PARAMS)) or None,
        rest["verify"],
        Lock.read(lock) if lock.exists() else None,
        rest["tune"],
    )
    return Work(Model(rest["model"], example_inputs=inputs, **rest["options"]), options, Path(rest["entry"]))
