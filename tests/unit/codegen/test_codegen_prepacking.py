"""Weights that are packed once: which arguments are weights, and what is left of a function without the packing."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tvm
from tvm import relax, te

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import function_digest, normal_form
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.program.schedule import scheduled_function
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.weights.layout_free import declare_weights, weight_of
from loopwright.codegen.weights.packed_weight import PACK, PackedWeight, packs_weight
from loopwright.codegen.weights.parameters import attach, detach
from loopwright.codegen.weights.prepacking import fold_packing, split
from tests.support.draws import numpy_draws
from tests.support.rule_programs import TARGET, product
from tuner.space.builtin import builtin_space

ROWS, DEPTH, COLUMNS = 6, 10, 21
RNG = numpy_draws()
X, WEIGHT, BIAS = (RNG.random(shape, dtype=np.float32) for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS), (COLUMNS,)))


def model(*, calls: int = 1, weight_is_input: bool = False, has_scan: bool = False) -> tvm.IRModule:
    """Return a linear layer; with several ``calls``, the sum of several that share their weight; or its scan."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((ROWS, DEPTH), "float32"))
    given = relax.Var("given", relax.TensorType((DEPTH, COLUMNS), "float32"))
    weight = given if weight_is_input else relax.const(WEIGHT)
    with builder.function("main", [x, given] if weight_is_input else [x]):
        with builder.dataflow():
            out = builder.emit(relax.op.add(relax.op.matmul(x, weight), relax.const(BIAS)))
            for _ in range(calls - 1):
                out = builder.emit(relax.op.add(out, relax.op.add(relax.op.matmul(x, weight), relax.const(BIAS))))
            out = builder.emit_output(relax.op.cumsum(out, axis=1) if has_scan else out)
        builder.emit_func_output(out)
    return builder.get()


def weights(mod: tvm.IRModule) -> list[int | None]:
    return [weight_of(func) for _, func in prim_funcs(mod)]


def scheduled(func: tvm.tirx.PrimFunc) -> tuple[tvm.tirx.PrimFunc, list[object]]:
    """Return a function with the first seed that packs its weight once, and the trace."""
    workload = normal_form(func)
    space = builtin_space(workload, TARGET, 1)
    for seed in space.seeds:
        schedule = space.replay(seed, 1)
        assert schedule is not None
        trace = json.loads(trace_to_json(schedule.trace))
        if packs_weight(trace):
            return scheduled_function(func, workload, trace, TARGET), trace
    raise AssertionError("no seed packs the weight")


def test_the_weight_is_the_largest_constant_of_a_function() -> None:
    assert weights(lower(model(), TARGET)) == [1]
    detached, values = detach(model())
    assert sorted(value.shape for value in values.values()) == [(DEPTH, COLUMNS), (COLUMNS,)]
    assert weights(lower(detached, TARGET)) == [1]


def test_both_sides_of_the_wire_agree_on_the_weight() -> None:
    detached, values = detach(model())
    on_service = lower(module_from_json(module_to_json(detached)), TARGET)
    on_client = attach(lower(detached, TARGET), values)
    [(_, theirs)], [(_, ours)] = prim_funcs(on_service), prim_funcs(on_client)
    assert function_digest(theirs) == function_digest(ours)


def test_what_a_caller_gives_in_each_call_is_no_weight() -> None:
    detached, _ = detach(model(weight_is_input=True))
    assert weights(lower(detached, TARGET)) == [None]
    # TVM's importers say so of parameters that the caller gives.
    main = detached["main"]
    detached.update_func(detached.get_global_var("main"), main.with_attr("num_input", 1))
    assert weights(lower(detached, TARGET)) == [None]


def test_a_function_that_is_called_with_a_weight_and_without_has_none() -> None:
    a = te.placeholder((4, 4), name="a")
    double = te.create_prim_func([a, te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="b")])
    builder = relax.BlockBuilder()
    callee = builder.add_func(double, "double")
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            given, constant = (
                builder.emit(relax.call_tir(callee, [each], relax.TensorType((4, 4), "float32")))
                for each in (x, relax.const(np.ones((4, 4), "float32")))
            )
            out = builder.emit_output(relax.op.add(given, constant))
        builder.emit_func_output(out)
    [(_, func)] = [
        (var, func) for var, func in prim_funcs(declare_weights(detach(builder.get())[0])) if "double" in str(var)
    ]
    assert weight_of(func) is None


def test_a_module_without_relax_has_no_weights_whatever_it_says() -> None:
    func = product(4, 8, 4)["main"].with_attr("layout_free_buffers", [1])
    assert weights(lower(tvm.IRModule({"main": func}), TARGET)) == [None]


def test_split_gives_a_function_that_packs_and_one_that_takes_what_it_packed() -> None:
    [(_, func)] = prim_funcs(lower(detach(model())[0], TARGET))
    whole, _ = scheduled(func)
    mod, packed = split(tvm.IRModule({"main": whole.with_attr("global_symbol", "main")}))
    assert isinstance(packed, PackedWeight)
    assert packed.argument == 1
    assert {str(var.name_hint) for var in mod.get_global_vars()} == {"main", PACK}
    built = compile_module(mod, TARGET)
    panels = tvm.runtime.empty(packed.shape, packed.dtype)
    built[PACK](tvm.runtime.tensor(WEIGHT), panels)
    out = tvm.runtime.empty((ROWS, COLUMNS), "float32")
    built["main"](tvm.runtime.tensor(X), panels, tvm.runtime.tensor(BIAS), out)
    np.testing.assert_allclose(out.numpy(), X @ WEIGHT + BIAS, rtol=1e-5)


def test_several_threads_split_functions() -> None:
    """TVM keeps the builders of all threads in one list."""
    [(_, func)] = prim_funcs(lower(detach(model())[0], TARGET))
    mod = tvm.IRModule({"main": scheduled(func)[0].with_attr("global_symbol", "main")})
    expected, interval = split(mod)[1], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: split(mod)[1], range(200)))
    finally:
        sys.setswitchinterval(interval)
    assert found == [expected] * 200


def test_a_module_that_packs_nothing_is_not_split() -> None:
    mod = product(4, 8, 4)
    assert split(mod) == (mod, None)
    assert fold_packing(mod) is mod


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("has_values", [True, False])
def test_constants_are_packed_when_a_model_is_compiled_and_parameters_in_each_call(
    calls: int, has_values: bool
) -> None:
    detached, values = detach(model(calls=calls))
    lowered = lower(detached, TARGET)
    known = attach(lowered, values) if has_values else lowered
    for var, func in prim_funcs(known):
        if weight_of(func) is not None:
            known.update_func(var, scheduled(func)[0])
    folded = fold_packing(known)
    assert any("prepacked" in str(var.name_hint) for var, _ in prim_funcs(folded))
    assert any("weight_prepack" in str(var.name_hint) for var, _ in prim_funcs(folded)) is not has_values
    vm = relax.VirtualMachine(compile_module(folded, TARGET), tvm.cpu())
    arguments = [X] if has_values else [X, *(value.numpy() for value in values.values())]
    result = vm["main"](*map(tvm.runtime.tensor, arguments))
    np.testing.assert_allclose(result.numpy(), calls * (X @ WEIGHT + BIAS), rtol=1e-5)


def test_a_trace_says_whether_it_packs_a_weight() -> None:
    [(_, func)] = prim_funcs(lower(detach(model())[0], TARGET))
    assert packs_weight(scheduled(func)[1])
    assert not packs_weight(None)
    assert not packs_weight([[], []])


def test_functions_without_a_block_to_compute_are_kept_beside_packed_ones() -> None:
    detached, values = detach(model(has_scan=True))
    known = attach(lower(detached, TARGET), values)
    for var, func in prim_funcs(known):
        if weight_of(func) is not None:
            known.update_func(var, scheduled(func)[0])
    vm = relax.VirtualMachine(compile_module(fold_packing(known), TARGET), tvm.cpu())
    result = vm["main"](tvm.runtime.tensor(X))
    np.testing.assert_allclose(result.numpy(), (X @ WEIGHT + BIAS).cumsum(1), rtol=1e-5)
