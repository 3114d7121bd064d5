"""Writing a model to a folder, in each form that an engine may take (`loopwright.comparing.files`)."""

from __future__ import annotations

import importlib
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from loopwright.applying import apply as applying
from loopwright.applying.lookup import LookedUp
from loopwright.codegen.serialization import module_to_json
from loopwright.codegen.weights.parameters import attach
from loopwright.comparing.case import Array, as_arrays
from loopwright.comparing.engines.tuned import as_arrays as tvm_arrays
from loopwright.comparing.files import Files, Form, written_onnx
from loopwright.frontends import onnx, to_program, torch, tvm_module, tvmscript
from loopwright.frontends.precision import TOLERANCE, precision
from loopwright.frontends.torch.values import flattened
from loopwright.model import Model

_NO_PYTORCH = "this model is no program of PyTorch, from which ONNX could be written; compare its .onnx file"


def write(folder: Path, source: Model, target: Any, *, with_onnx: bool) -> tuple[Files, str]:
    """Write a model; return the files, and the name of the program that computed the expected outputs.

    ``target`` is that of `Client.compile`. Without ``with_onnx``, a model of PyTorch is not written as ONNX.

    Raises:
        UnsupportedModel, TypeError, ValueError: as `loopwright.frontends.to_program`, and as `Model.shape`.
    """
    model = source.model
    if torch.accepts(model):
        return _write_torch(folder, source, target, with_onnx), "PyTorch"
    program = to_program(source)
    if onnx.accepts(model):
        return _described(folder, "onnx", _onnx_file(folder, model), source, target), "unscheduled TVM"
    path = folder / "model.json"
    if tvmscript.accepts(model):
        text = tvmscript.to_payload(model)
        path = folder / ("model.json" if text.format == "tvm-json" else "model.py")
        path.write_text(text.data)
    elif tvm_module.accepts(model):
        path.write_text(module_to_json(importlib.import_module("loopwright.codegen.functions").as_module(model)))
    else:
        path.write_text(module_to_json(attach(program.module, program.weights)))
    return _described(folder, "tvm", path, source, target), "unscheduled TVM"


def complete(files: Files, looked_up: LookedUp, source: Model) -> Files:
    """Draw the inputs of a model that brings none, and compute what is expected by its unscheduled program.

    Numbers are drawn from a standard normal distribution, integers from 0 and 1: they may be indices or truth values.

    Raises:
        ValueError: the model has no Relax function ``main``, an input has no fixed shape, or an example input has
            another one.
    """
    import tvm
    from tvm import relax

    main = next((func for var, func in looked_up.module.functions_items() if var.name_hint == "main"), None)
    if not isinstance(main, relax.Function):
        raise ValueError("a comparison calls the Relax function main, and this module has none; give a whole model")
    generator = np.random.default_rng(0)
    examples = onnx.example_inputs(source) if onnx.accepts(source.model) else {}
    drawn = [_drawn(param, generator) for param in main.params]
    inputs = list(examples.values()) or drawn
    if (given := [each.shape for each in inputs]) != (taken := [each.shape for each in drawn]):
        raise ValueError(f"the example inputs have the shapes {given}, and with these shapes= the model takes {taken}")
    executable = applying.build(looked_up.module, looked_up.target)
    run = relax.VirtualMachine(executable, tvm.cpu())["main"]
    expected = tvm_arrays(run(*(tvm.runtime.tensor(array) for array in inputs)))
    return _with_precision(files, [*inputs, *expected]).write(inputs, expected)


def _write_torch(folder: Path, source: Model, target: Any, with_onnx: bool) -> Files:
    if source.state is not None:
        raise ValueError("state is for compile; a model that keeps buffers is neither compared nor packaged")
    pytorch, program = importlib.import_module("torch"), torch.exported(source)
    if program.example_inputs is None:
        raise ValueError(
            "the exported program has no example inputs, which a comparison needs; export and save it again with them"
        )
    args, kwargs = program.example_inputs
    if program.range_constraints and source.shapes:
        raise ValueError(
            "a PyTorch program with symbolic extents is compared at the extents of its example inputs; leave out "
            "shapes, and export the program with example inputs of the extents to compare"
        )
    specs = (program.call_spec.in_spec, program.call_spec.out_spec)
    if program.range_constraints or not all(map(_is_plain, specs)):
        # Classes would have to be known in other processes; symbolic extents lose their names when they are saved.
        flat, by_name = flattened(program.module(check_guards=False), args, kwargs)
        program = torch.export("the model", flat, (), by_name)
        args, kwargs = program.example_inputs
    path = folder / "model.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytorch.export.save(program, path)
    graph, without = written_onnx(program, folder / "model.onnx") if with_onnx else (None, "no ONNX was asked for")
    inputs = as_arrays((args, dict(kwargs)))
    with pytorch.no_grad():
        expected = as_arrays(program.module(check_guards=False)(*args, **kwargs))
    kinds = [str(each.dtype).removeprefix("torch.") for each in (*program.state_dict.values(), *_tensors(args, kwargs))]
    files = Files(folder, "pt2", _of_file(source, path), target, *_precision(kinds), graph, without)
    return files.write(inputs, expected)


def _is_plain(spec: Any) -> bool:
    """Return whether a structure consists of tuples, lists and dictionaries."""
    return spec.type in (None, tuple, list, dict) and all(map(_is_plain, spec.children()))


def _tensors(*values: Any) -> list[Any]:
    pytorch = importlib.import_module("torch")
    return [leaf for leaf in pytorch.utils._pytree.tree_leaves(values) if isinstance(leaf, pytorch.Tensor)]


def _onnx_file(folder: Path, model: Any) -> Path:
    if isinstance(model, str | os.PathLike):
        return Path(model).absolute()
    path = folder / "model.onnx"
    importlib.import_module("onnx").save(model, str(path), save_as_external_data=True)
    return path


def _described(folder: Path, form: Form, path: Path, source: Model, target: Any) -> Files:
    graph = path if form == "onnx" else None
    return Files(folder, form, _of_file(source, path), target, *_precision([]), graph, _NO_PYTORCH)


def _of_file(source: Model, path: Path) -> Model:
    """Return the model in the file that was written for ``source``, with the options that are not in the file."""
    return replace(source, model=path, example_inputs=None, spec=None, shapes=source.shape or None)


def _with_precision(files: Files, arrays: list[Array]) -> Files:
    lowest, tolerance = _precision([array.dtype.name for array in arrays])
    return Files(**{**vars(files), "precision": lowest, "tolerance": tolerance})


def _precision(kinds: list[str]) -> tuple[str, float]:
    """Return the lowest precision of floating-point numbers among some dtypes, and what it tolerates."""
    lowest = precision(kinds)
    return lowest, TOLERANCE[lowest]


def _drawn(param: Any, generator: np.random.Generator) -> Array:
    shape = getattr(param.ty, "shape", None)
    extents = [int(extent) for extent in shape] if shape is not None and all(map(_is_fixed, shape)) else None
    if extents is None:
        raise ValueError(f"input {param.name} has no fixed shape; give the extents, as shapes={{'n': 128}}")
    dtype = str(param.ty.dtype)
    if "float" in dtype:
        return generator.standard_normal(extents).astype(dtype)
    return generator.integers(0, 2, extents).astype(dtype)


def _is_fixed(extent: Any) -> bool:
    return hasattr(extent, "value")
