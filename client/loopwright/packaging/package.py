"""Making a package: what `loopwright.Client.package` does once the bests are known. Needs TVM and a C++ compiler."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import tvm
from tvm import relax

from loopwright.applying import apply as applying
from loopwright.applying.lookup import LookedUp
from loopwright.applying.report import AppliedFunction, ApplyReport
from loopwright.codegen.functions import prim_funcs, relax_funcs, write_only
from loopwright.codegen.host import threads
from loopwright.codegen.program import linking, schedule
from loopwright.codegen.program.argument_values import argument_values
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import function_digest, normal_form
from loopwright.codegen.versions import VECTOR_MATH_VERSION
from loopwright.codegen.weights.packed_weight import PACK
from loopwright.codegen.weights.prepacking import split
from loopwright.comparing.files import Files
from loopwright.errors import UnsupportedModel
from loopwright.packaging import load
from loopwright.packaging.exporting import export_apart, write_threads
from loopwright.packaging.inputs import fixed_inputs
from loopwright.packaging.manifest import (
    Check,
    Example,
    Licence,
    Manifest,
    MappedWeight,
    PackagedFunction,
    Packing,
    TensorSpec,
    Weights,
)
from loopwright.packaging.package_files import NAME, digests
from loopwright.version import VERSION

_DTYPES = {"float": "kDLFloat", "int": "kDLInt", "uint": "kDLUInt", "bool": "kDLBool", "bfloat": "kDLBfloat"}
_COPIED_LIBRARIES = {"apache-tvm": "libtvm_runtime.so", "apache-tvm-ffi": "libtvm_ffi.so"}


def check_folder(folder: Path) -> None:
    """Raise FileExistsError for a folder that is not empty, and NotADirectoryError for a file."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; give a folder of its own for the package")


def write(folder: Path, model: LookedUp, files: Files, *, name: str, reference: str) -> ApplyReport:
    """Write a package to a folder that `check_folder` allows; returns what hit and what missed.

    ``files`` hold the inputs of an example, and what ``reference`` computed for them.

    Raises:
        UnsupportedModel: the target is no CPU, or one of another architecture.
    """
    if model.target.kind.name != "llvm":
        raise UnsupportedModel(f"packages are for CPUs, and the target is {model.target}; use compile() for it")
    if linking.is_foreign(model.target):
        raise UnsupportedModel(
            f"a package has this machine's libraries, and the target is for {linking.machine(model.target)}; use "
            "compile() and export_library() for it"
        )
    applied, report = applying.apply(model)
    folder.mkdir(parents=True, exist_ok=True)
    mapped = export_apart(applying.build(applied, model.target), folder)
    functions = _with_checks(folder, model, report)
    inputs = fixed_inputs(model.module)
    count = report.threads[-1] if report.threads else threads.usable_cores()
    arrays: dict[str, Any] = {f"input_{n}": array for n, array in enumerate(files.inputs)}
    np.savez(folder / "example.npz", **arrays | {f"expected_{n}": array for n, array in enumerate(files.expected)})
    shutil.copy(load.__file__, folder / "load.py")
    (folder / "load.cc").write_text(_cpp(inputs, mapped, count), encoding="utf-8")
    licences = tuple(_libraries(folder))
    write_threads(folder / "lib")
    manifest = Manifest(
        name=name,
        created_at=datetime.now(UTC),
        loopwright=VERSION,
        tvm=importlib.metadata.version("apache-tvm"),
        tvm_ffi=importlib.metadata.version("apache-tvm-ffi"),
        target=_plain(model.target),
        threads=count,
        inputs=inputs,
        mapped=tuple(MappedWeight(**each) for each in mapped),
        weights=_weights(applied),
        functions=functions,
        example=Example(reference=reference, tolerance=files.tolerance),
        files=dict(sorted(digests(folder))),
        licences=licences,
    )
    (folder / NAME).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
    return report


def _with_checks(folder: Path, model: LookedUp, report: ApplyReport) -> tuple[PackagedFunction, ...]:
    """Write the library of checks, and return the functions. Whose best is the unscheduled program needs no check."""
    checks: dict[str, tvm.tirx.PrimFunc] = {}
    funcs = {str(var.name_hint): func for var, func in prim_funcs(model.module)}
    functions = []
    for number, applied in enumerate(report.functions):
        func, best = funcs[applied.name], applied.best
        check = _check(func, applied, model, f"f{number}", checks) if applied.outcome == "tuned" else None
        functions.append(
            PackagedFunction(
                name=applied.name,
                outcome=applied.outcome,
                workload_hash=best.workload_hash if best else function_digest(func),
                record_id=best.record_id if best else None,
                device_class=best.device_class if best else None,
                certificate=best.certificate if best else None,
                check=check,
            )
        )
    if checks:
        module = tvm.IRModule({name: func.with_attr("global_symbol", name) for name, func in checks.items()})
        library = compile_module(module, model.target, argument_checks=False)
        library.export_library(str(folder / "checks.so"))
    return tuple(functions)


def _check(
    func: tvm.tirx.PrimFunc,
    applied: AppliedFunction,
    model: LookedUp,
    name: str,
    checks: dict[str, tvm.tirx.PrimFunc],
) -> Check:
    """Add the programs that a certificate is about to ``checks``, and return how they are called."""
    best = applied.best
    assert best is not None
    workload = normal_form(func)
    exact = best.codegen_version < VECTOR_MATH_VERSION
    tuned, packed = split(schedule.scheduled_module(workload, best.trace, model.target, exact_math=exact))
    checks[name] = tuned["main"]
    checks[f"{name}_unscheduled"] = schedule.scheduled_module(workload, None, model.target, exact_math=True)["main"]
    packing = None
    if packed is not None:
        checks[f"{name}_pack"] = tuned[PACK]
        packing = Packing(function=f"{name}_pack", argument=packed.argument, shape=packed.shape, dtype=packed.dtype)
    plain = workload["main"]
    args = tuple(
        TensorSpec(name=str(param.name), shape=tuple(map(int, param.shape)), dtype=str(param.dtype), values=values)
        for param, values in zip(plain.params, argument_values(plain), strict=True)
    )
    return Check(tuned=name, reference=f"{name}_unscheduled", args=args, outputs=write_only(plain), packing=packing)


def _libraries(folder: Path) -> Iterator[Licence]:
    """Copy TVM's runtime and its licences to the package; yields what was copied, and under which licence."""
    (folder / "lib").mkdir()
    (folder / "licences").mkdir()
    for package, library in _COPIED_LIBRARIES.items():
        distribution = importlib.metadata.distribution(package)
        copied = []
        for path in distribution.files or ():
            if path.name == library:
                shutil.copy(str(path.locate()), folder / "lib" / library)
            elif path.name in ("LICENSE", "NOTICE") and "3rdparty" not in path.parts:
                target = folder / "licences" / f"{package}-{path.name}.txt"
                shutil.copy(str(path.locate()), target)
                copied.append(target.relative_to(folder).as_posix())
        metadata = distribution.metadata
        licence = metadata["License-Expression"] or metadata["License"] or "see its files"
        yield Licence(
            of=f"{package} (lib/{library})",
            version=distribution.version,
            licence=licence,
            files=tuple(sorted({*copied})),
        )


def _cpp(inputs: tuple[TensorSpec, ...], mapped: list[dict[str, Any]], count: int) -> str:
    lines = []
    for number, spec in enumerate(inputs):
        lines.append(f"  std::vector<int64_t> shape{number} = {_cpp_list(spec.shape)};")
        lines.append(f"  DLTensor input{number} = Input(shape{number}, {_cpp_dtype(spec.dtype)});  // {spec.name}")
    arguments = ", ".join(f"&input{number}" for number in range(len(inputs)))
    template = Template(Path(__file__).with_name("load.cc.in").read_text(encoding="utf-8"))
    weights = ", ".join(
        f"{{{each['first']}, {_cpp_list(each['shape'])}, {_cpp_dtype(each['dtype'])}}}" for each in mapped
    )
    return template.substitute(threads=count, weights=weights, inputs="\n".join(lines), arguments=arguments)


def _cpp_list(shape: Sequence[int]) -> str:
    return f"{{{', '.join(map(str, shape))}}}"


def _cpp_dtype(dtype: str) -> str:
    kind = dtype.rstrip("0123456789")
    bits = dtype.removeprefix(kind) or "8"
    return f"DLDataType{{{_DTYPES[kind]}, {bits}, 1}}"


def _weights(mod: tvm.IRModule) -> Weights:
    tensors: dict[int, int] = {}

    def visit(node: object) -> None:
        if isinstance(node, tvm.ir.GenericConst) and getattr(node.value, "shape", None) is not None:
            tensors[hash(node)] = node.value.numpy().nbytes

    for _, func in relax_funcs(mod):
        relax.analysis.post_order_visit(func, visit)
    return Weights(count=len(tensors), bytes=sum(tensors.values()))


def _plain(target: tvm.target.Target) -> dict[str, object]:
    return dict(json.loads(str(target)))
