"""Functions that are compiled once for all models: what decides their code, and what a folder of them may be like."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from loopwright.applying.assembling import assembled
from loopwright.applying.lookup import LookedUp, digests
from loopwright.applying.report import Prediction
from loopwright.codegen.functions import used_prim_funcs
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.program import built_functions
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.built_functions import BuiltFunctions, Recipe
from loopwright.codegen.program.digest import function_digest, normal_form
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.rules import prior
from loopwright.codegen.weights.packed_weight import packs_weight
from loopwright.codegen.weights.parameters import attach, detach
from tests.support.draws import numpy_draws

TARGET = this_cpu()
RNG = numpy_draws()
X, WEIGHT = (RNG.random(shape, dtype=np.float32) for shape in ((6, 10), (10, 21)))


def linear(*, turned: bool = False, columns: int = 21) -> tvm.IRModule:
    """Return a product with a weight, twice; or behind a function that turns its input."""
    weight = np.ascontiguousarray(WEIGHT[:, :columns])
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((10, 6) if turned else (6, 10), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = builder.emit(relax.op.permute_dims(x)) if turned else x
            first = builder.emit(relax.op.matmul(value, relax.const(weight)))
            second = builder.emit(relax.op.matmul(builder.emit(relax.op.exp(value)), relax.const(weight)))
            out = builder.emit_output(relax.op.add(first, second))
        builder.emit_func_output(out)
    return builder.get()


EXPECTED = X @ WEIGHT + np.exp(X) @ WEIGHT


def sum_and_norm() -> tvm.IRModule:
    """Return a sum and its layer norm, both of which are results: one function with two outputs."""
    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType((6, 40), "float32")) for name in "xy")
    scale, shift = relax.const(np.ones(40, "float32")), relax.const(np.zeros(40, "float32"))
    with builder.function("main", [x, y]):
        with builder.dataflow():
            both = builder.emit(relax.op.add(x, y))
            norm = builder.emit(relax.op.nn.layer_norm(both, scale, shift, [-1]))
            out = builder.emit_output(relax.Tuple([both, norm]))
        builder.emit_func_output(out)
    return builder.get()


def known(mod: tvm.IRModule, *, has_values: bool = True) -> tuple[LookedUp, list[Any]]:
    """Return a lowered model whose functions have their first choices, and the weights that it takes as inputs."""
    detached, values = detach(mod)
    lowered = lower(detached, TARGET)
    lowered = attach(lowered, values) if has_values else lowered
    found = {}
    for var, func in used_prim_funcs(lowered):
        choices = list(prior.choices(normal_form(func), TARGET))
        if choices:
            trace = next((each for each in choices if packs_weight(each)), choices[0])
            found[str(var.name_hint)] = Prediction(trace, 1.0, 2.0)
    return LookedUp(lowered, TARGET, {}, found, digests=digests(lowered)), [] if has_values else list(values.values())


def run(program: Any, *inputs: Any) -> Any:
    tensors = [each if isinstance(each, tvm.runtime.Tensor) else tvm.runtime.tensor(each) for each in inputs]
    return relax.VirtualMachine(program, tvm.cpu())["main"](*tensors).numpy()


def check(model: LookedUp, functions: BuiltFunctions, *inputs: Any) -> Any:
    program, report = assembled(model, functions)
    assert report.predictions
    np.testing.assert_allclose(run(program, *(inputs or (X,))), EXPECTED, rtol=1e-5)
    return program


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The symbols of scheduled functions that were compiled."""
    symbols: list[str] = []

    def counted(mod: tvm.IRModule, *args: Any, **options: Any) -> Any:
        symbols.extend(str(var.name_hint) for var in mod.get_global_vars())
        return compile_module(mod, *args, **options)

    monkeypatch.setattr(built_functions, "compile_module", counted)
    return symbols


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "functions"


def test_a_compiled_function_may_have_two_outputs(folder: Path) -> None:
    model, _ = known(sum_and_norm())
    program, report = assembled(model, BuiltFunctions(folder))
    assert len(report.predictions) == 1
    assert len(used_prim_funcs(model.module)) == 1, "the sum and its norm are no longer one function"
    x, y = (RNG.random((6, 40), dtype=np.float32) for _ in range(2))
    both, norm = relax.VirtualMachine(program, tvm.cpu())["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y))
    np.testing.assert_array_equal(both.numpy(), x + y)
    centred = (x + y) - (x + y).mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(norm.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("has_values", [True, False])
def test_other_models_and_processes_take_a_function_that_was_compiled(
    folder: Path, compiled: list[str], tmp_path: Path, has_values: bool
) -> None:
    model, weights = known(linear(), has_values=has_values)
    functions = BuiltFunctions(folder)
    check(model, functions, X, *weights)
    assert any(symbol.endswith("_pack") for symbol in compiled)
    before = list(compiled)
    check(model, functions, X, *weights)
    program = check(model, BuiltFunctions(folder), X, *weights)  # as of another process
    assert compiled == before
    program.export_library(str(tmp_path / "model.so"))
    exported = tvm.runtime.load_module(str(tmp_path / "model.so"))
    np.testing.assert_array_equal(run(exported, X, *weights), run(program, X, *weights))
    other, weights = known(linear(turned=True), has_values=has_values)
    check(other, functions, np.ascontiguousarray(X.T), *weights)
    assert not [symbol for symbol in set(before) if compiled.count(symbol) > 1]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: cut(entry / "code.so"),
        lambda entry: (entry / "code.o").unlink(),
        lambda entry: (entry / "about.json").write_text("{}"),
        lambda entry: (entry / "about.json").write_text("[]"),
    ],
)
def test_a_function_whose_files_are_damaged_is_compiled_again(
    folder: Path, compiled: list[str], damage: Callable[[Path], None]
) -> None:
    model, _ = known(linear())
    check(model, BuiltFunctions(folder))
    before = set(compiled)
    [damaged, *_] = sorted(folder.iterdir())
    damage(damaged)
    compiled.clear()
    check(model, BuiltFunctions(folder))
    assert set(compiled) == {symbol for symbol in before if symbol.startswith(damaged.name)}
    check(model, BuiltFunctions(folder))
    assert len(set(compiled)) == len(compiled)


def test_nothing_is_taken_from_a_folder_that_others_can_write(folder: Path, compiled: list[str]) -> None:
    model, _ = known(linear())
    check(model, BuiltFunctions(folder))
    count = len(compiled)
    folder.chmod(0o777)
    check(model, BuiltFunctions(folder))
    assert len(compiled) == 2 * count


@pytest.mark.parametrize("reason", ["no folder", "no linker", "the linker fails"])
def test_without_a_folder_functions_are_compiled_once_in_the_process(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reason: str
) -> None:
    if reason != "no folder":
        found = None if reason == "no linker" else "/bin/false"
        monkeypatch.setattr(built_functions, "linker", lambda target: found)
    functions = BuiltFunctions(None if reason == "no folder" else folder)
    model, _ = known(linear())
    check(model, functions)
    program = check(model, functions)
    assert len(set(compiled)) == len(compiled)
    assert not folder.exists() or not list(folder.iterdir())
    program.export_library(str(tmp_path / "model.so"))
    np.testing.assert_allclose(run(tvm.runtime.load_module(str(tmp_path / "model.so")), X), EXPECTED, rtol=1e-5)


def test_a_folder_is_bounded_and_keeps_what_was_used_last(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built_functions, "_MOST_STORED", 2)
    monkeypatch.setattr(built_functions, "_MOST_LOADED", 1)

    def build(columns: int, functions: BuiltFunctions) -> str:
        model, _ = known(linear(columns=columns))
        name, prediction = next(iter(model.predictions.items()))
        [func] = [func for var, func in used_prim_funcs(model.module) if str(var.name_hint) == name]
        recipe = Recipe.of(func, function_digest(func), prediction.trace)
        return functions.built(func, recipe, TARGET).symbol

    functions = BuiltFunctions(folder)
    unfinished, left = folder / ".new-1", folder / ".new-2"
    for path in (unfinished, left):
        path.mkdir()
    os.utime(left, (0, 0))
    first, second = build(9, functions), build(16, functions)
    assert build(9, BuiltFunctions(folder)) == first
    third = build(5, functions)
    assert {entry.name for entry in folder.iterdir()} == {first, third, unfinished.name}
    assert build(16, functions) == second
    assert [compiled.count(symbol) for symbol in (first, second, third)] == [1, 2, 1]


def test_several_threads_write_one_function(folder: Path) -> None:
    model, _ = known(linear())
    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(lambda _: assembled(model, BuiltFunctions(folder))[0], range(4)))
    for program in programs:
        np.testing.assert_allclose(run(program, X), EXPECTED, rtol=1e-5)
    assert not [entry for entry in folder.iterdir() if entry.name.startswith(".")]


def test_in_a_context_of_the_callers_functions_are_compiled_for_the_model_alone(
    folder: Path, compiled: list[str]
) -> None:
    model, _ = known(linear())
    with tvm.transform.PassContext(config={"tirx.disable_vectorize": True}):
        check(model, BuiltFunctions(folder))
    assert not compiled
    assert not list(folder.iterdir())


def test_what_decides_the_code_decides_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    [(var, func), *_] = used_prim_funcs(lower(linear(), TARGET))
    recipe = Recipe.of(func, digests(tvm.IRModule({var: func}))[str(var.name_hint)][0], [[], []])
    others = [
        dataclasses.replace(recipe, **change)
        for change in ({"digest": 32 * "0"}, {"trace": None}, {"exact_math": True}, {"is_noalias": False})
    ]
    assert Recipe.of(func.with_attr("tirx.noalias", False), recipe.digest, recipe.trace) == others[-1]
    names = [each.symbol(TARGET) for each in (recipe, *others)]
    names.append(recipe.symbol(tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v2"})))
    monkeypatch.setattr(built_functions, "CODEGEN_VERSION", 99)
    names.append(recipe.symbol(TARGET))
    assert len(set(names)) == len(names)
