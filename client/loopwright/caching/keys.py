"""The key of a compiled model: a digest of all that decides what is compiled, but for the bests."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from loopwright.codegen.host import cpu, threads
from loopwright.codegen.versions import CODEGEN_VERSION
from loopwright.frontends import onnx, to_program, torch
from loopwright.model import Model
from loopwright.version import VERSION

_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "torch", "onnx")
"""Whose versions decide what a model is translated into."""


def captured(source: Model) -> Model:
    """Return a model whose content has a key: a module of PyTorch is exported, which runs it."""
    if torch.accepts(source.model) and not isinstance(source.model, str | os.PathLike):
        return dataclasses.replace(source, model=torch.exported(source), example_inputs=None)
    return source


def key(source: Model, params: Mapping[str, Any] | None, **settings: Any) -> str:
    """Return 64 hexadecimal digits for a `captured` model, its options, ``settings``, this machine and this version.

    Raises:
        TypeError, UnsupportedModel, FileNotFoundError: as `loopwright.frontends.to_program`.
    """
    options = {"shapes": source.shape, "exact_math": source.exact_math, "math": source.math}
    versions = {"loopwright": VERSION, "codegen": CODEGEN_VERSION} | {name: _version(name) for name in _PACKAGES}
    machine = {"cpu": _processor(), "cores": threads.usable_cores()}
    digest = hashlib.sha256(json.dumps([options, versions, machine, settings], sort_keys=True).encode())
    for part in _content(source):
        digest.update(hashlib.sha256(part).digest())
    for name, value in sorted((params or {}).items()):
        digest.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(_bytes(value)).digest())
    return digest.hexdigest()


def _processor() -> list[str]:
    try:
        vendor, flags = cpu.flags()
    except OSError:  # no Linux
        return [platform.machine(), platform.processor()]
    return [platform.machine(), vendor, *sorted(flags)]


def _content(source: Model) -> Iterator[bytes | memoryview]:
    model = source.model
    if isinstance(model, str | os.PathLike) and PurePath(model).suffix in (".onnx", ".pt2"):
        yield from _files(Path(model))
    elif torch.accepts(model):
        yield from _exported(model)
    elif onnx.accepts(model):
        yield model.SerializeToString()
    else:
        from loopwright.codegen.serialization import module_to_json

        program = to_program(source)
        yield module_to_json(program.module).encode()
        for name, weight in sorted(program.weights.items()):
            yield name.encode()
            yield _bytes(weight)


def _files(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, and of those beside it in which an ONNX file keeps tensors."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    content = path.read_bytes()
    yield content
    if path.suffix == ".onnx" and b"location" in content:
        helper = importlib.import_module("onnx.external_data_helper")
        graph = importlib.import_module("onnx").load(os.fspath(path), load_external_data=False)
        found = {
            helper.ExternalDataInfo(tensor).location
            for tensor in helper._get_all_tensors(graph)
            if helper.uses_external_data(tensor)
        }
        for name in sorted(found):
            yield (path.parent / name).read_bytes()


def _exported(program: Any) -> Iterator[bytes | memoryview]:
    """Yield the parts of an exported program: its graphs, the forms of its values, and its tensors."""
    pytorch = importlib.import_module("torch")
    yield program.graph_module.print_readable(print_output=False).encode()
    yield repr((program.graph_signature, program.call_spec, program.range_constraints)).encode()
    for node in program.graph.nodes:
        leaves = pytorch.utils._pytree.tree_leaves(node.meta.get("val"))
        forms = [(each.dtype, *each.shape) if isinstance(each, pytorch.Tensor) else each for each in leaves]
        yield repr((node.name, forms)).encode()
    for name, value in sorted({**program.state_dict, **program.constants}.items()):
        yield name.encode()
        yield _bytes(value) if isinstance(value, pytorch.Tensor) else repr(value).encode()


def _bytes(value: Any) -> memoryview | bytes:
    """Return the elements of a tensor of PyTorch, TVM or NumPy."""
    if hasattr(value, "detach"):
        flat = value.detach().contiguous().reshape(-1)
        return memoryview(flat.view(importlib.import_module("torch").uint8).numpy())
    array = value.numpy() if hasattr(value, "numpy") else importlib.import_module("numpy").ascontiguousarray(value)
    return bytes(str(array.dtype) + str(array.shape), "utf-8") + array.tobytes()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
