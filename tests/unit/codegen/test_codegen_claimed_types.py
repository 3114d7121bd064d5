"""Functions in TVM's JSON whose expressions claim types that they do not have: none is proven or built."""

from __future__ import annotations

import json

import pytest
import tvm
from tvm.target import Target
from tvm_ffi.serialization import from_json_graph_str

from loopwright.codegen.program.bounds import unproven
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.lowered_bounds import PROVEN

HEAD = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32"), I: T.Buffer((256,), "int32")):
    for i in range(256):
        with T.sblock("b"):
            v = T.axis.spatial(256, i)
            """
CLAMPED = "T.max(T.min(I[v], 255), 0)"
WIDE = f'T.Cast("int64", {CLAMPED})'
LIES = {
    # What is narrow by its claim alone passes for an index of any buffer of 256.
    "bits": ('B[T.Cast("int32", T.Cast("uint8", I[v] ^ 12345))] = A[v]', "prim.BitwiseXor", "uint8"),
    "an element": ('B[T.Cast("int32", T.Cast("uint8", I[v]))] = A[v]', "ir.TensorLoad", "uint8"),
    "a choice": (
        'B[T.Cast("int32", T.Cast("uint8", T.if_then_else(v < 7, I[v], I[0])))] = A[v]',
        "ir.Call",
        "uint8",
    ),
    "an extreme": ('B[T.Cast("int32", T.Cast("uint8", T.max(I[v], 3)))] = A[v]', "prim.Max", "uint8"),
    "a selection": ('B[T.Cast("int32", T.Cast("uint8", T.Select(v < 7, I[v], 3)))] = A[v]', "prim.Select", "uint8"),
    "a truth": ('B[T.Cast("int32", T.Cast("bool", I[v] & 7))] = A[v]', "prim.BitwiseAnd", "bool"),
    # What is computed with 32 bits overflows, though it claims 64.
    "a product": (f"B[T.floordiv({CLAMPED} * 16777217, 16777217)] = A[v]", "prim.Mul", "int64"),
    "a sum": (f"B[{CLAMPED} + 2147483392 - 2147483392] = A[v]", "prim.Add", "int64"),
    "a shift": (f"B[T.shift_right(T.shift_left({CLAMPED}, 23), 23)] = A[v]", "prim.LShift", "int64"),
    # What is a vector takes more than the element that its index names.
    "a vector": ("B[v] = A[v]", "ir.TensorLoad", "float32x16"),
}


def function(store: str, kind: str = "", dtype: str = "") -> tvm.tirx.PrimFunc:
    """Return the function, in which all nodes of a kind that have another type claim ``dtype``."""
    func = tvm.script.from_source(HEAD + store)
    graph = json.loads(tvm.ir.save_json(func))
    nodes = graph["nodes"]
    nodes.append({"type": "ir.PrimType", "data": {"span": 0, "dtype": dtype or "int32"}})
    assert nodes[0] == {"type": "None"}
    changed = [node for node in nodes if node["type"] == kind and nodes[node["data"]["ty"]]["type"] == "ir.PrimType"]
    for node in changed:
        node["data"]["ty"] = len(nodes) - 1
    assert bool(changed) is bool(kind)
    return from_json_graph_str(json.dumps(graph))


@pytest.mark.parametrize("name", LIES)
def test_what_claims_another_type_is_not_proven(name: str) -> None:
    store, kind, dtype = LIES[name]
    assert any("which is no" in finding for finding in unproven(function(store, kind, dtype)))


def test_what_claims_another_type_is_not_built() -> None:
    store, kind, dtype = LIES["bits"]
    honest = function('B[T.Cast("int32", T.Cast("uint8", I[v] ^ 12345))] = A[v]')
    assert unproven(honest) == []
    compile_module(tvm.IRModule({"main": honest.with_attr(PROVEN, True)}), Target("llvm"))
    with pytest.raises(ValueError, match="not proven to stay inside of its buffers"):
        compile_module(tvm.IRModule({"main": function(store, kind, dtype).with_attr(PROVEN, True)}), Target("llvm"))


@pytest.mark.parametrize("value", [128, -129, 300])
def test_a_number_that_its_type_does_not_have_is_not_proven(value: int) -> None:
    func = tvm.script.from_source(HEAD + 'B[v + (T.Cast("int32", T.int8(44)) - 44)] = A[v]')
    assert unproven(func) == []
    graph = json.loads(tvm.ir.save_json(func))
    nodes = graph["nodes"]
    nodes.append({"type": "int", "data": value})
    small = [node["data"] for node in nodes if node["type"] == "ir.IntImm"]
    [changed] = [data for data in small if nodes[data["ty"]]["data"]["dtype"] == "int8"]
    changed["value"] = len(nodes) - 1
    assert any("which is no" in finding for finding in unproven(from_json_graph_str(json.dumps(graph))))


@pytest.mark.parametrize("call", ["T.popcount(I[v])", "T.clz(I[v])"])
def test_the_result_of_a_function_is_no_index(call: str) -> None:
    assert unproven(tvm.script.from_source(HEAD + f"B[T.max(T.min({call}, 255), 0)] = A[v]"))


def test_a_loop_that_counts_with_another_type_is_not_proven() -> None:
    func = tvm.script.from_source(HEAD + "B[v] = A[v]")
    graph = json.loads(tvm.ir.save_json(func))
    nodes = graph["nodes"]
    nodes.append({"type": "ir.PrimType", "data": {"span": 0, "dtype": "int8"}})
    [loop] = [node["data"] for node in nodes if node["type"] == "tirx.For"]
    nodes[loop["loop_var"]]["data"]["ty"] = len(nodes) - 1
    assert any("counts with another type" in each for each in unproven(from_json_graph_str(json.dumps(graph))))
