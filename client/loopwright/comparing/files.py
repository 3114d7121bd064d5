"""A model written to a folder, from which each engine's process reads it in the form that the engine takes."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopwright.comparing.case import Array, NoForm
from loopwright.model import Model

Form = Literal["pt2", "onnx", "tvm"]
"""What the model was: a program of PyTorch, an ONNX file, or a module of TVM."""

_DESCRIPTION = "case.json"


@dataclass(frozen=True)
class Files:
    """A `Case`, by the folder that holds it.

    Attributes:
        model: The model's file, with the options to compile it with.
        target: The target to compile it for.
        onnx: The same as an ONNX file; None if there is none.
        without_onnx: Why there is none.
    """

    folder: Path
    form: Form
    model: Model
    target: Any
    precision: str
    tolerance: float
    onnx: Path | None
    without_onnx: str

    @classmethod
    def read(cls, folder: Path) -> Files:
        fields = json.loads((folder / _DESCRIPTION).read_text())
        onnx, model = fields.pop("onnx"), fields.pop("model")
        source = Model(Path(model.pop("model")), **model)
        return cls(folder=folder, model=source, onnx=onnx and Path(onnx), **fields)

    def write(self, inputs: list[Array], expected: list[Array]) -> Files:
        """Write the description, the inputs and the outputs that are expected; returns itself."""
        np.savez(self.folder / "inputs.npz", *inputs)
        np.savez(self.folder / "expected.npz", *expected)
        fields = asdict(self)
        del fields["folder"]
        (self.folder / _DESCRIPTION).write_text(json.dumps(fields, default=os.fspath))
        return self

    @cached_property
    def inputs(self) -> list[Array]:
        return _arrays(self.folder / "inputs.npz")

    @cached_property
    def expected(self) -> list[Array]:
        return _arrays(self.folder / "expected.npz")

    @property
    def graphs(self) -> Mapping[str, Path]:
        if self.onnx is None:
            raise NoForm(self.without_onnx)
        return {"ONNX": self.onnx}

    def torch_module(self) -> Any:
        return self._exported.module(check_guards=False)

    def torch_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return copies in PyTorch's own memory, which is aligned to 64 bytes."""
        torch = importlib.import_module("torch")
        args, kwargs = self._exported.example_inputs
        return torch.utils._pytree.tree_map(
            lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, (args, dict(kwargs))
        )

    def tvm_inputs(self) -> list[Any]:
        tvm = importlib.import_module("tvm")
        if self.form != "pt2":
            return [tvm.runtime.tensor(array) for array in self.inputs]
        torch = importlib.import_module("torch")
        leaves = torch.utils._pytree.tree_leaves(self.torch_inputs())
        return [tvm.runtime.from_dlpack(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def program(self) -> tuple[Model, Any]:
        return self.model, self.target

    @cached_property
    def _exported(self) -> Any:
        if self.form != "pt2":
            raise NoForm("this model is not a PyTorch program; compare a torch.nn.Module or a .pt2 file")
        return importlib.import_module("torch").export.load(self.model.model)


def written_onnx(exported: Any, path: Path) -> tuple[Path | None, str]:
    """Write an exported program as an ONNX file; returns its path, or None and why there is none."""
    if missing := [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]:
        return None, f"PyTorch writes ONNX by means of {' and '.join(missing)}; pip install {' '.join(missing)}"
    torch = importlib.import_module("torch")
    args, kwargs = exported.example_inputs
    try:
        with warnings.catch_warnings(), _quiet("torch.onnx"), _quiet("onnxscript"):
            warnings.simplefilter("ignore")
            torch.onnx.export(
                exported, args, str(path), kwargs=dict(kwargs), dynamo=True, external_data=True, verbose=False
            )
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return None, f"PyTorch cannot write this model as ONNX: {lines[0]}"
    return path, ""


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a library's log of less than errors out of the terminal."""
    log = logging.getLogger(name)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _arrays(path: Path) -> list[Array]:
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]
