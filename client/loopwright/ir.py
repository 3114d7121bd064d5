"""Where things are in TVM: imported only when a call works on programs, and only through `require_tvm`."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

from loopwright.errors import TvmUnavailable

VERSIONS = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}
"""What the service speaks. TVM's JSON is bound to its version, and it admits releases of tvm-ffi that crash on it."""


def require_tvm() -> Any:
    """The tvm package.

    Raises:
        TvmUnavailable: it is not installed, or not in the versions that the service speaks.
    """
    try:
        found = {name: importlib.metadata.version(name) for name in VERSIONS}
        tvm = importlib.import_module("tvm")
    except ImportError as error:
        raise TvmUnavailable(
            f"this call needs TVM; install it with: pip install 'loopwright[tvm]' ({error})"
        ) from error
    if found != VERSIONS:
        raise TvmUnavailable(f"this call needs {_pins(VERSIONS)}, but {_pins(found)} is installed")
    return tvm


def _pins(versions: dict[str, str]) -> str:
    return ", ".join(f"{name}=={version}" for name, version in versions.items())


def module_to_json(mod: Any) -> str:
    return str(require_tvm().ir.save_json(mod))


def module_from_json(text: str) -> Any:
    """The module that `module_to_json` wrote, by the same TVM version."""
    return require_tvm().ir.load_json(text)


def module_from_script(text: str) -> Any:
    """TVMScript as an IRModule. TVM's parser runs what it reads, as importing the file would: own code only.

    Import lines are passed over, since the parser takes definitions only and knows T, R and I by itself.
    """
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return as_module(require_tvm().script.from_source("\n".join(lines)))


def as_module(program: Any) -> Any:
    """An IRModule as it is; a PrimFunc as a module under its own name, or ``main``."""
    tvm = require_tvm()
    if isinstance(program, tvm.IRModule):
        return program
    name = str(program.attrs["global_symbol"]) if "global_symbol" in (program.attrs or {}) else "main"
    return tvm.IRModule({name: program})


def prim_funcs(mod: Any) -> list[tuple[Any, Any]]:
    """The (GlobalVar, PrimFunc) pairs of a module, in order of name."""
    tvm = require_tvm()
    pairs = [(var, func) for var, func in mod.functions_items() if isinstance(func, tvm.tirx.PrimFunc)]
    return sorted(pairs, key=lambda pair: str(pair[0].name_hint))


def relax_funcs(mod: Any) -> list[tuple[Any, Any]]:
    """The (GlobalVar, relax.Function) pairs of a module, in order of name."""
    require_tvm()
    function = importlib.import_module("tvm.relax").Function
    pairs = [(var, func) for var, func in mod.functions_items() if isinstance(func, function)]
    return sorted(pairs, key=lambda pair: str(pair[0].name_hint))


def has_relax(mod: Any) -> bool:
    return bool(relax_funcs(mod))


def bind_shapes(mod: Any, shapes: dict[str, int] | None) -> Any:
    """The module with symbolic extents bound by name, in Relax functions and PrimFuncs; as it is where there are none.

    Raises:
        ValueError: the module has no symbolic extent of that name.
    """
    if not shapes:
        return mod
    tvm = require_tvm()
    bound = mod.clone()
    left = set(shapes)
    for var, func in prim_funcs(mod):
        buffers = {}
        for param in func.params:
            extents = list(param.shape) if isinstance(param.ty, tvm.tirx.buffer.BufferType) else []
            named = [str(getattr(extent, "name", "")) for extent in extents]
            if set(named) & set(shapes):
                left -= set(named)
                shape = [
                    tvm.tirx.const(shapes[name], str(extent.ty)) if name in shapes else extent
                    for name, extent in zip(named, extents, strict=True)
                ]
                buffers[param] = tvm.tirx.decl_buffer(shape, param.dtype, param.name, elem_offset=param.elem_offset)
        if buffers:
            bound.update_func(var, func.specialize(buffers))
    if has_relax(mod):
        relax = importlib.import_module("tvm.relax")
        names = {
            str(symbol.name)
            for _, func in relax_funcs(mod)
            for symbol in [*relax.analysis.free_symbolic_vars(func), *relax.analysis.defined_symbolic_vars(func)]
        }
        left -= names
        bound = relax.transform.BindSymbolicVars({n: e for n, e in shapes.items() if n in names})(bound)
    if left:
        raise ValueError(f"shapes names {', '.join(sorted(left))}, which the module does not have")
    return bound


def as_main(func: Any) -> Any:
    """A copy of a PrimFunc as MetaSchedule wants a workload: the module whose only function is ``main``.

    The body is copied too: a Schedule of a module that nobody else holds changes statements in place, also those that
    it shares with the function it was made of.
    """
    tvm = require_tvm()
    copy = tvm.s_tir.renew_defs(func)
    return tvm.IRModule({"main": copy.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)})


def structural_key(func: Any) -> Any:
    """Hashable; equal for functions that compute the same in the same way, however they and their variables are named.

    Attributes that do not change what is computed (names, how Relax may fuse it, the promise that buffers do not
    overlap, which MetaSchedule gives to every workload) are left out.
    """
    require_tvm()
    for name in ("global_symbol", "op_pattern", "tirx.noalias"):
        func = func.without_attr(name)
    return importlib.import_module("tvm_ffi").StructuralKey(func)


def target_from(target: Any) -> Any:
    """A tvm Target from a Target, a kind, a tag, JSON text, a dictionary, or the older ``llvm -mcpu=…`` form."""
    cls = require_tvm().target.Target
    if isinstance(target, str) and target.lstrip().startswith("{"):
        target = json.loads(target)
    elif isinstance(target, str) and " -" in target:
        target = _options_to_dict(target)
    return target if isinstance(target, cls) else cls(target)


def _options_to_dict(text: str) -> dict[str, Any]:
    kind, *words = text.replace("=", " ").split()
    options: dict[str, Any] = {"kind": kind}
    for key, value in zip(words[::2], words[1::2], strict=True):
        name = key.lstrip("-")
        options[name] = value.split(",") if name in ("mattr", "keys") else int(value) if value.isdigit() else value
    return options


def trace_from_json(trace: list[Any], mod: Any, target: Any) -> Any:
    """A `Trace` from ``[instructions, decisions]``: replayed on ``mod``, whose program it fits."""
    return schedule_with(trace, mod, target).trace


def schedule_with(trace: list[Any], mod: Any, target: Any) -> Any:
    """The Schedule of ``mod`` (one function, ``main``) with a trace ``[instructions, decisions]`` applied."""
    tvm = require_tvm()
    if any(instruction[0] == "Tensorize" for instruction in trace[0]):
        _load_intrinsics(target)
    schedule = tvm.s_tir.Schedule(mod, debug_mask="none", error_render_level="none")
    tvm.s_tir.schedule.Trace.apply_json_to_schedule(trace, schedule)
    return schedule


def trace_to_json(trace: Any) -> list[Any]:
    """A trace as plain JSON values, ``[instructions, decisions]``."""
    return [_plain(part) for part in trace.as_json()]


def _plain(value: Any) -> Any:
    """TVM's containers and boxed numbers as plain JSON values."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "items"):
        return {str(k): _plain(v) for k, v in value.items()}
    if hasattr(value, "__iter__"):
        return [_plain(item) for item in value]
    return value.value


def _load_intrinsics(target: Any) -> None:
    """Register the tensor intrinsics that traces for the target may name.

    Importing TVM's package of them parses those of every vendor, which takes over ten seconds. Only the target's
    submodule is imported, beneath a stand-in that is taken away again, so that the real package can still load.
    """
    # TVM inspects the stack for each intrinsic; for frames of the import system, which have no file, `inspect` would
    # go through all modules each time: of cuda's that takes ten seconds instead of three.
    for frozen in ("importlib._bootstrap", "importlib._bootstrap_external"):
        inspect.modulesbyfile.setdefault(os.path.abspath(f"<frozen {frozen}>"), frozen)
    name = "tvm.s_tir.tensor_intrin"
    stand_in = None
    if name not in sys.modules:
        stand_in = types.ModuleType(name)
        stand_in.__path__ = [str(Path(sys.modules["tvm.s_tir"].__file__ or "").parent / "tensor_intrin")]
        sys.modules[name] = stand_in
    try:
        importlib.import_module(f"{name}.{_vendor(target)}")
    finally:
        if stand_in is not None:
            del sys.modules[name]


def _vendor(target: Any) -> str:
    if target.kind.name == "cuda":
        return "cuda"
    triple = str(target.attrs.get("mtriple") or require_tvm().target.codegen.llvm_get_system_triple())
    return "arm_cpu" if triple.startswith(("aarch64", "arm")) else "x86"
