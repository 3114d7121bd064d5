"""PyTorch models: modules, exported programs (also saved ones), and FX graphs."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopwright.errors import UnsupportedModel, first_line
from loopwright.extras import require_tvm
from loopwright.program import Program, detach

if TYPE_CHECKING:
    from loopwright.frontends import Options

ACCEPTS = (
    "a torch.nn.Module or FX GraphModule with example_inputs, a torch.export.ExportedProgram or the path of a .pt2 file"
)
OPTIONS = frozenset({"example_inputs"})


def accepts(model: Any) -> bool:
    if isinstance(model, str | os.PathLike):
        return str(model).endswith(".pt2") and "\n" not in str(model)
    # Whoever holds a PyTorch model has imported PyTorch already.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))


def to_program(model: Any, options: Options) -> Program:
    """Translate by TVM's importers; a module is captured by ``torch.export`` first, which runs it once."""
    require_tvm()
    with warnings.catch_warnings():
        # PyTorch warns of a class of its own whenever an exported program is copied.
        warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
        return detach(_module(model, options))


def _module(model: Any, options: Options) -> Any:
    torch = importlib.import_module("torch")
    if isinstance(model, str | os.PathLike):
        if not Path(model).exists():
            raise FileNotFoundError(f"no such file: {model}")
        model = torch.export.load(model)
    importer = importlib.import_module("tvm.relax.frontend.torch")
    if isinstance(model, torch.export.ExportedProgram):
        if options.example_inputs is not None:
            raise TypeError("an ExportedProgram knows its inputs; leave example_inputs out")
        return _translated(lambda: importer.from_exported_program(model, unwrap_unit_return_tuple=True))
    inputs = _inputs(model, options.example_inputs)
    if isinstance(model, torch.fx.GraphModule):
        described = [(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for tensor in inputs]
        return _translated(lambda: importer.from_fx(model, described, unwrap_unit_return_tuple=True))
    exported = _exported(model, inputs)
    return _translated(lambda: importer.from_exported_program(exported, unwrap_unit_return_tuple=True))


def _inputs(model: Any, example_inputs: Any) -> tuple[Any, ...]:
    """The example inputs, with which the model was seen to run."""
    torch = importlib.import_module("torch")
    name = type(model).__name__
    if example_inputs is None:
        raise TypeError(f"{name} needs example_inputs=(tensor, …): its shapes and dtypes are what is tuned for")
    inputs = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    if model.training and any(_behaves_otherwise(module) for module in model.modules()):
        raise UnsupportedModel(f"{name} is in training mode, and what is tuned is inference; call .eval() on it first")
    try:
        with torch.no_grad():
            model(*inputs)
    except Exception as error:
        raise UnsupportedModel(
            f"{name} does not run on its example_inputs: {first_line(error)}; give them as the model is called, "
            "model(*example_inputs)"
        ) from error
    return inputs


def _behaves_otherwise(module: Any) -> bool:
    """Whether a module computes something else while it is trained."""
    return any(word in type(module).__name__ for word in ("BatchNorm", "Dropout", "InstanceNorm"))


def _exported(model: Any, inputs: tuple[Any, ...]) -> Any:
    torch = importlib.import_module("torch")
    try:
        return torch.export.export(model, inputs)
    except Exception as error:
        raise UnsupportedModel(
            f"torch.export cannot capture {type(model).__name__}{_where(error)}: {first_line(error)}; a branch or a "
            "loop on the values of tensors must be written with torch.where, torch.cond or a fixed count"
        ) from error


def _where(error: BaseException) -> str:
    """The line of the model's own code at which it failed, of which PyTorch's message need not speak."""
    pytorch = str(Path(sys.modules["torch"].__file__ or "").parent)
    frames = traceback.extract_tb(error.__traceback__)[2:]  # behind _exported and torch.export.export
    own = [frame for frame in frames if not frame.filename.startswith((pytorch, "<"))]
    return f" at {own[-1].filename}:{own[-1].lineno}, `{own[-1].line}`" if own else ""


def _translated(translate: Callable[[], Any]) -> Any:
    try:
        return translate()
    except Exception as error:
        raise UnsupportedModel(
            f"TVM has no translation for a part of this model: {first_line(error)}; write that part with other "
            "operators, or tune the parts around it"
        ) from error
