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

from loopwright.caching.file_digests import FileDigests
from loopwright.codegen.host import cpu, threads
from loopwright.codegen.versions import CODEGEN_VERSION
from loopwright.frontends import onnx, to_program, torch
from loopwright.model import Model
from loopwright.version import VERSION

_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "torch", "onnx")
"""Whose versions decide what a model is translated into."""
_OPTIONS = ("exact_math", "math", "shares_weights", "int8_activations")
"""Of a `Model`, beside its shapes."""


def captured(source: Model) -> Model:
    """Return a model whose content has a key: a module of PyTorch is exported, which runs it."""
    if torch.accepts(source.model) and not isinstance(source.model, str | os.PathLike):
        return dataclasses.replace(source, model=torch.exported(source), example_inputs=None)
    return source


def key(source: Model, params: Mapping[str, Any] | None, files: FileDigests, **settings: Any) -> str:
    """Return 64 hexadecimal digits for a `captured` model, its options, ``settings``, this machine and this version.

    Files are read unless ``files`` knows them.

    Raises:
        TypeError, UnsupportedModel, FileNotFoundError: as `loopwright.frontends.to_program`.
    """
    options = {"shapes": source.shape} | {name: getattr(source, name) for name in _OPTIONS}
    versions = {"loopwright": VERSION, "codegen": CODEGEN_VERSION} | {name: _version(name) for name in _PACKAGES}
    machine = {"cpu": _processor(), "cores": threads.usable_cores()}
    digest = hashlib.sha256(json.dumps([options, versions, machine, settings], sort_keys=True).encode())
    for part in _content(source, files):
        digest.update(part)
    for name, value in sorted((params or {}).items()):
        digest.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(_bytes(value)).digest())
    return digest.hexdigest()


def _processor() -> list[str]:
    try:
        vendor, flags = cpu.flags()
    except OSError:  # no Linux
        return [platform.machine(), platform.processor()]
    return [platform.machine(), vendor, *sorted(flags)]


def _content(source: Model, files: FileDigests) -> Iterator[bytes]:
    """Yield the SHA-256 of each part of a model."""
    model = source.model
    if isinstance(model, str | os.PathLike) and PurePath(model).suffix in (".onnx", ".pt2"):
        yield from _files(Path(model), files)
    else:
        for part in _parts(source):
            yield hashlib.sha256(part).digest()


def _files(path: Path, files: FileDigests) -> Iterator[bytes]:
    """Yield the SHA-256 of a file, and of those beside it in which an ONNX file keeps tensors."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")

    def beside(content: bytes) -> list[str]:
        return _external(path) if path.suffix == ".onnx" and b"location" in content else []

    found = files.of(path, beside)
    yield bytes.fromhex(found.sha256)
    for name in found.beside:
        yield bytes.fromhex(files.of(path.parent / name).sha256)


def _external(path: Path) -> list[str]:
    """Return the names of the files in which an ONNX file keeps tensors."""
    helper = importlib.import_module("onnx.external_data_helper")
    graph = importlib.import_module("onnx").load(os.fspath(path), load_external_data=False)
    tensors = filter(helper.uses_external_data, helper._get_all_tensors(graph))
    return sorted({helper.ExternalDataInfo(tensor).location for tensor in tensors})


def _parts(source: Model) -> Iterator[bytes | memoryview]:
    """Yield the content of a model that is no file."""
    model = source.model
    if torch.accepts(model):
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
