"""JSON <-> TVM objects, the workload digest, and where things are in TVM: the one file that knows.

TVM's JSON is bound to its version, so `TVM_VERSION` stands beside everything that is stored.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import tvm
import tvm.s_tir
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Trace
from tvm.target import Target, codegen

from tuner.errors import InvalidModule, InvalidTarget, UnsupportedVersion
from tuner.operation import operation
from tuner.types import TensorInfo, Workload

TVM_VERSION = "0.27.0.post1"
TVM_FFI_VERSION = "0.1.14.post1"


def check_versions() -> None:
    """Raise UnsupportedVersion unless the installed TVM and tvm-ffi are the pinned pair.

    Other tvm-ffi releases that TVM's own metadata admits crash when a module is saved.
    """
    found = {name: importlib.metadata.version(name) for name in ("apache-tvm", "apache-tvm-ffi")}
    wanted = {"apache-tvm": TVM_VERSION, "apache-tvm-ffi": TVM_FFI_VERSION}
    if found != wanted:
        raise UnsupportedVersion(f"Loopwright needs {wanted}, but {found} is installed; install the locked versions")


def load_intrinsics(target: Target) -> None:
    """Register the tensor intrinsics that the target's rules look up.

    TVM's own package imports those of every vendor, which takes over ten seconds; only the target's
    submodule is loaded, beneath a package object that stands in for it. Idempotent.
    """
    name = "tvm.s_tir.tensor_intrin"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(Path(tvm.s_tir.__file__).parent / "tensor_intrin")]
        sys.modules[name] = package
    if target.kind.name == "cuda":
        module = "cuda"
    else:
        module = "arm_cpu" if _triple(target).startswith(("aarch64", "arm")) else "x86"
    # TVM inspects the stack for each intrinsic; for frames of the import system, which have no file, `inspect` would
    # go through all modules each time: of cuda's that takes ten seconds instead of three.
    for frozen in ("importlib._bootstrap", "importlib._bootstrap_external"):
        inspect.modulesbyfile.setdefault(os.path.abspath(f"<frozen {frozen}>"), frozen)
    importlib.import_module(f"{name}.{module}")


_ASSUMED: dict[str, dict[str, Any]] = {
    "llvm": {"num-cores": 1},
    "cuda": {"max_threads_per_block": 1024, "max_shared_memory_per_block": 49152},
}
"""What TVM's rules ask of a target and its text may leave out; the limits are those of every GPU that CUDA runs on."""


def tune_context(mod: tvm.IRModule, target: Target, space: Any, seed: int) -> ms.TuneContext:
    """A TuneContext on one thread (the host's other cores belong to builders); ``seed`` in [1, 2^31-1]."""
    load_intrinsics(target)
    if any(key not in target.attrs for key in _ASSUMED[target.kind.name]):
        target = Target(_ASSUMED[target.kind.name] | json.loads(canonical_target(target)))
    return ms.TuneContext(mod=mod, target=target, space_generator=space, rand_state=seed, num_threads=1)


def module_to_json(mod: tvm.IRModule) -> str:
    return str(tvm.ir.save_json(mod))


def module_from_json(text: str) -> tvm.IRModule:
    """The module that `module_to_json` wrote. Trusted text only: user input goes through tuner.guard."""
    return tvm.ir.load_json(text)


def script(mod: tvm.IRModule) -> str:
    return str(mod.script())


def wrap(func: tvm.tirx.PrimFunc) -> tvm.IRModule:
    """A PrimFunc as the module whose only function is ``main``, as MetaSchedule wants a workload.

    It is a copy: a schedule of a module that nobody else holds changes statements in place, shared ones included.
    """
    return tvm.IRModule(
        {"main": tvm.s_tir.renew_defs(func).with_attr("global_symbol", "main").with_attr("tirx.noalias", True)}
    )


def digest(mod: tvm.IRModule) -> str:
    """Name of a workload: SHA-256 of its printed form with canonical variable names, 32 hex digits.

    Two functions that differ only in names of variables and buffers have the same digest; block names count (traces
    refer to them). TVM's structural hash is not used because it has differed between platforms.

    Raises:
        InvalidModule: the function is nested so deeply that its printed form cannot be parsed.
    """
    printed = script(mod)
    try:
        tree = ast.parse(printed)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise InvalidModule("a function is nested too deeply; store parts of its expressions in buffers") from error
    lines = [line.encode() for line in printed.splitlines()]
    for line, start, stop, name in reversed(_canonical_names(tree)):
        lines[line] = lines[line][:start] + name + lines[line][stop:]
    code = b"\n".join(line for line in lines if not line.lstrip().startswith(b"#"))
    return hashlib.sha256(code).hexdigest()[:32]


def family(mod: tvm.IRModule) -> str:
    """Name that a workload shares with those that differ in shapes, strides and padding only, 32 hex digits.

    Of its blocks it takes the names and the kinds of their axes, of its buffers ranks and dtypes: as much as a trace
    depends on.
    """
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(mod["main"].body, (tvm.s_tir.SBlock, blocks.append), order="post")
    structure = [
        [[str(block.name_hint), [int(axis.iter_type) for axis in block.iter_vars]] for block in blocks],
        [[len(info.shape), info.dtype] for info in tensor_args(mod["main"])],
    ]
    return hashlib.sha256(json.dumps(structure).encode()).hexdigest()[:32]


def _canonical_names(tree: ast.Module) -> list[tuple[int, int, int, bytes]]:
    """Where variables stand and their canonical names: (line from 0, first byte, end byte, name), in order of position.

    Every binding is a new variable v0, v1, …, for the printer uses a name again once its scope has ended. The walk is
    not recursive, for sums of a thousand terms are as deep.
    """
    names: dict[str, bytes] = {}
    bound = 0
    found: list[tuple[int, int, int, bytes]] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(_in_order_of_evaluation(node)))
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
            names[_name(node)] = b"v%d" % bound
            bound += 1
        if isinstance(node, ast.arg | ast.Name) and _name(node) in names:
            start = node.col_offset
            found.append((node.lineno - 1, start, start + len(_name(node).encode()), names[_name(node)]))
    return sorted(found)


def _name(node: ast.arg | ast.Name) -> str:
    return node.arg if isinstance(node, ast.arg) else node.id


def _in_order_of_evaluation(node: ast.AST) -> list[ast.AST]:
    """A node's children, each value before the names that it is bound to."""
    match node:
        case ast.For():
            return [node.iter, node.target, *node.body]
        case ast.Assign():
            return [node.value, *node.targets]
        case ast.AnnAssign(value=ast.expr() as value):
            return [node.annotation, value, node.target]
        case _:
            return list(ast.iter_child_nodes(node))


def tensor_args(func: tvm.tirx.PrimFunc) -> tuple[TensorInfo, ...]:
    """Shapes and dtypes of the buffer parameters, in order. Static shapes only."""
    return tuple(TensorInfo(tuple(int(extent) for extent in b.shape), str(b.dtype)) for b in func.params)


def workload(func: tvm.tirx.PrimFunc, name: str) -> Workload:
    mod = wrap(func)
    return Workload(
        hash=digest(mod),
        family=family(mod),
        name=name,
        module_json=module_to_json(mod),
        script=script(mod),
        args=tensor_args(mod["main"]),
        operation=operation(mod),
    )


def target_from(text_or_dict: str | dict[str, Any]) -> Target:
    """A Target from a kind, a tag, JSON text or the old ``llvm -mcpu=…`` form.

    Raises:
        InvalidTarget: TVM does not know it, or it is a kind that Loopwright cannot tune.
    """
    value: str | dict[str, Any] = text_or_dict
    try:
        if isinstance(value, str):
            value = value.strip()
            if value.startswith("{"):
                value = json.loads(value)
            elif " -" in value:
                value = _options_to_dict(value)
        target = Target(value)
    except Exception as error:
        raise InvalidTarget(
            f"TVM does not know the target {text_or_dict!r}: {first_line(error)}. "
            "Use auto, llvm, cuda, options such as 'llvm -mcpu=znver4', a tag such as nvidia/nvidia-h100, or JSON"
        ) from error
    if target.kind.name not in ("llvm", "cuda"):
        raise InvalidTarget(f"target kind {target.kind.name!r} cannot be tuned; use llvm, cuda or auto")
    cpu = target.attrs.get("mcpu")
    # LLVM itself would go on with code for any processor.
    if target.kind.name == "llvm" and cpu and not codegen.llvm_is_valid_cpu(cpu, _triple(target)):
        raise InvalidTarget(
            f"LLVM does not know the processor {cpu!r} for {_triple(target)}; use auto, or leave mcpu out"
        )
    return target


def _triple(target: Target) -> str:
    return str(target.attrs.get("mtriple") or codegen.llvm_get_system_triple())


def _options_to_dict(text: str) -> dict[str, Any]:
    """``llvm -mcpu=x -mattr=+a,+b -num-cores 2`` as the dictionary that TVM takes now."""
    words = text.replace("=", " ").split()
    options: dict[str, Any] = {"kind": words[0]}
    for key, value in zip(words[1::2], words[2::2], strict=True):
        name = key.lstrip("-")
        options[name] = value.split(",") if name in ("mattr", "keys") else int(value) if value.isdigit() else value
    return options


def canonical_target(target: Target) -> str:
    """The target as JSON text with sorted keys and without what TVM derives by itself."""
    return json.dumps(_without_derived(_plain_json(target.export())), sort_keys=True)


def _without_derived(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in fields.items() if k not in ("keys", "tag") and v not in ("", [], None)}
    return {k: _without_derived(v) if isinstance(v, dict) else v for k, v in kept.items()}


def new_schedule(mod: tvm.IRModule, seed: int = 1) -> Schedule:
    """A schedule whose errors give their reason without the program around it, which would be slow to render."""
    return Schedule(mod, seed=seed, debug_mask="none", error_render_level="fast")


def apply_trace_json(mod: tvm.IRModule, trace_json: str, seed: int = 1) -> Schedule:
    """Replay a stored trace on the workload it was found for."""
    schedule = new_schedule(mod, seed)
    Trace.apply_json_to_schedule(json.loads(trace_json), schedule)
    return schedule


def trace_to_json(trace: Trace) -> str:
    return json.dumps(_plain_json(trace.as_json()), separators=(",", ":"))


def _plain_json(value: Any) -> Any:
    """TVM's containers and boxed numbers as plain JSON values."""
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    if hasattr(value, "items"):
        return {str(k): _plain_json(v) for k, v in value.items()}
    if hasattr(value, "__iter__"):
        return [_plain_json(item) for item in value]
    return value.value


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def write_only(func: tvm.tirx.PrimFunc) -> tuple[bool, ...]:
    """For each parameter, whether the function writes it without reading it first (as its blocks declare)."""
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(func.body, (tvm.s_tir.SBlock, blocks.append), order="post")
    reads = [region.source for block in blocks for region in block.reads]
    writes = [region.source for block in blocks for region in block.writes]
    return tuple(
        any(param.same_as(buffer) for buffer in writes) and not any(param.same_as(buffer) for buffer in reads)
        for param in func.params
    )
