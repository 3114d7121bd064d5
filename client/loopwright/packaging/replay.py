"""The process that replays a package's certificates: it runs what is packaged, with TVM's runtime alone.

PYTHON -m loopwright.packaging.replay FOLDER ROUNDS

It prints lines of JSON: for the whole model, and for each function that has a check. If the machine lacks instructions
that the package uses, it is this process that ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi

from loopwright.codegen import arrays
from loopwright.codegen.arrays import DRAWS, Array, numpy_dtype
from loopwright.codegen.host import lock as host_lock
from loopwright.comparing.case import largest_error
from loopwright.packaging import runtime
from loopwright.packaging.load import PackagedModel
from loopwright.packaging.manifest import Check, Manifest
from loopwright.packaging.package_files import NAME

SAMPLE_SECONDS = 0.01
"""Of one sample: the mean of as many calls as take so long."""
FUNCTION_SECONDS = 4.0
"""Of the rounds of a function together. Slow ones run in fewer rounds, but never fewer than `MIN_ROUNDS`."""
MIN_ROUNDS = 3
MODEL = ""
"""Stands for the whole model in place of a function's name."""


@dataclass
class Replayed:
    """Timings and outcome of a function; ``run_secs`` are seconds a call, by round.

    ``error`` is the largest difference over the largest magnitude. ``wrong`` says what is wrong, if anything is.
    """

    name: str
    error: float = 0.0
    wrong: str | None = None
    run_secs: list[float] = field(default_factory=list)
    unscheduled_secs: list[float] = field(default_factory=list)


def main() -> None:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    manifest = Manifest.model_validate_json((folder / NAME).read_text(encoding="utf-8"))
    model = PackagedModel(folder)
    print(json.dumps(asdict(whole(folder, manifest, model, rounds))), file=answers)
    checks = [(function.name, function.check) for function in manifest.functions if function.check]
    library = tvm_ffi.load_module(str(folder / "checks.so")) if checks else None
    for name, check in checks:
        print(json.dumps(asdict(function(library, name, check, rounds))), file=answers)


def whole(folder: Path, manifest: Manifest, model: PackagedModel, rounds: int) -> Replayed:
    """Run the model on its example, compare its outputs, and time it."""
    with np.load(folder / "example.npz") as example:
        inputs = [example[f"input_{n}"] for n in range(len(manifest.inputs))]
        expected = [example[f"expected_{n}"] for n in range(len(example.files) - len(inputs))]
    arguments = [runtime.tensor(value, spec.dtype) for value, spec in zip(inputs, manifest.inputs, strict=True)]
    found = Replayed(MODEL)
    try:
        found.error = largest_error([_plain(each) for each in _leaves(model.run(*arguments))], expected)
    except ValueError as error:
        found.wrong = str(error)
        return found
    if not found.error <= manifest.example.tolerance:
        found.wrong = (
            f"an output differs from that of {manifest.example.reference} by {found.error:.1e} of its largest value"
        )
        return found
    number = _number(lambda: model.run(*arguments))
    for _ in range(rounds):
        with host_lock.quiet():
            started = time.perf_counter()
            for _ in range(number):
                model.run(*arguments)
            found.run_secs.append((time.perf_counter() - started) / number)
    return found


def function(library: Any, name: str, check: Check, rounds: int) -> Replayed:
    """Run the tuned and the unscheduled program on random inputs, compare their results, and time them in turn."""
    found = Replayed(name)
    for seed, kind in enumerate(DRAWS):
        drawn = _draw(check, kind, seed)
        results = []
        for program in (check.reference, check.tuned):
            arguments = [runtime.tensor(value, spec.dtype) for value, spec in zip(drawn, check.args, strict=True)]
            library[program](*_packed(library, check, arguments) if program == check.tuned else arguments)
            results.append([runtime.array(each) for each in arguments])
        for position, (expected, result) in enumerate(zip(*results, strict=True)):
            compared = arrays.compare(result, expected, arrays.tolerance(check.args[position].dtype))
            found.error = max(found.error, compared.max_rel_error)
            if not compared.close:
                found.wrong = (
                    f"argument {position} differs from the unscheduled program's by {compared.max_rel_error:.1e} of "
                    f"its largest value on {kind} inputs"
                )
                return found
    arguments = [runtime.tensor(value, spec.dtype) for value, spec in zip(drawn, check.args, strict=True)]
    programs = {
        check.tuned: (_packed(library, check, arguments), found.run_secs),
        check.reference: (arguments, found.unscheduled_secs),
    }
    once = {program: runtime.seconds(library, program, arguments, 1) for program, (arguments, _) in programs.items()}
    longest = sum(max(SAMPLE_SECONDS, seconds) for seconds in once.values())
    for _ in range(max(MIN_ROUNDS, min(rounds, int(FUNCTION_SECONDS / longest)))):
        with host_lock.quiet():
            for program, (arguments, samples) in programs.items():
                number = max(1, round(SAMPLE_SECONDS / max(once[program], 1e-8)))
                samples.append(runtime.seconds(library, program, arguments, number))
    return found


def _draw(check: Check, kind: str, seed: int) -> list[Array]:
    rng, bound = np.random.default_rng(seed), arrays.index_bound(check.args)
    return [
        arrays.poison(spec, kind) if is_output else arrays.random_array(spec, kind, rng, bound)
        for spec, is_output in zip(check.args, check.outputs, strict=True)
    ]


def _packed(library: Any, check: Check, arguments: list[Any]) -> list[Any]:
    """Return the arguments with the weight packed, as the tuned program takes it."""
    packing = check.packing
    if packing is None:
        return arguments
    packed = runtime.empty(packing.shape, packing.dtype)
    library[packing.function](arguments[packing.argument], packed)
    return [packed if place == packing.argument else each for place, each in enumerate(arguments)]


def _number(call: Any) -> int:
    """Return how many calls fill a sample."""
    call()
    started = time.perf_counter()
    call()
    return max(1, round(SAMPLE_SECONDS / max(time.perf_counter() - started, 1e-8)))


def _leaves(value: Any) -> list[Any]:
    return [value] if isinstance(value, tvm_ffi.Tensor) else [leaf for each in value for leaf in _leaves(each)]


def _plain(value: Any) -> Array:
    """Return an output as an array; bf16 as f32."""
    found = runtime.array(value)
    return found.astype(np.float32) if found.dtype == numpy_dtype("bfloat16") else found


if __name__ == "__main__":
    main()
