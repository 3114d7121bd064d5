"""What TVM's loader is not given: graphs on which it would overflow its stack, or leave nothing in place of a value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm.tirx import IndexMap

from loopwright.codegen.errors import InvalidModule
from tests.support.rule_programs import layer_norm, product, softmax
from tests.support.tuner_programs import mlp
from tuner.guard.module import foreign_kinds, load_module_json

Nodes = list[dict[str, Any]]


def graph(mod: tvm.IRModule) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tvm.ir.save_json(mod))
    return found


def number_of(nodes: Nodes, kind: str) -> int:
    return next(number for number, node in enumerate(nodes) if node["type"] == kind)


def itself_in_a_list(nodes: Nodes) -> None:
    number = number_of(nodes, "ffi.Array")
    nodes[number]["data"].append(number)


def itself_in_a_field(nodes: Nodes) -> None:
    number = number_of(nodes, "tirx.For")
    nodes[number]["data"]["body"] = number


def itself_over_another(nodes: Nodes) -> None:
    inner, outer = number_of(nodes, "ir.PrimType"), number_of(nodes, "ir.IntImm")
    assert inner < outer
    nodes[inner]["data"]["span"] = outer


def itself_as_a_key(nodes: Nodes) -> None:
    number = number_of(nodes, "ffi.Map")
    nodes[number]["data"] += [number, 0]


def no_body(nodes: Nodes) -> None:
    nodes[number_of(nodes, "tirx.For")]["data"]["body"] = number_of(nodes, "None")


def no_extent(nodes: Nodes) -> None:
    nodes[number_of(nodes, "ir.Range")]["data"]["extent"] = number_of(nodes, "None")


def no_index(nodes: Nodes) -> None:
    load = nodes[number_of(nodes, "ir.TensorLoad")]["data"]
    nodes[load["indices"]]["data"][0] = number_of(nodes, "None")


def no_function(nodes: Nodes) -> None:
    nodes[nodes[number_of(nodes, "ir.IRModule")]["data"]["functions"]]["data"][1] = number_of(nodes, "None")


def behind_the_last(nodes: Nodes) -> None:
    nodes[number_of(nodes, "tirx.For")]["data"]["min"] = len(nodes)


def below_the_first(nodes: Nodes) -> None:
    nodes[number_of(nodes, "tirx.For")]["data"]["min"] = -1


def truth_for_a_number(nodes: Nodes) -> None:
    nodes[number_of(nodes, "tirx.For")]["data"]["min"] = True


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *((each, "earlier nodes only") for each in (itself_in_a_list, itself_in_a_field, itself_over_another)),
        *((each, "earlier nodes only") for each in (itself_as_a_key, behind_the_last, below_the_first)),
        (truth_for_a_number, "earlier nodes only"),
        *((each, "has nothing as") for each in (no_body, no_extent, no_index, no_function)),
    ],
)
def test_what_ends_the_loader_is_refused(change: Callable[[Nodes], None], said: str) -> None:
    found = graph(product(8, 12, 20))
    change(found["nodes"])
    with pytest.raises(InvalidModule, match=said):
        load_module_json(json.dumps(found))


def test_a_call_of_what_is_no_function_is_refused() -> None:
    found = graph(softmax(4, 8))
    nodes = found["nodes"]
    nodes[number_of(nodes, "ir.Call")]["data"]["op"] = number_of(nodes, "ir.IntImm")
    with pytest.raises(InvalidModule, match=r"calls a ir\.IntImm"):
        load_module_json(json.dumps(found))


@pytest.mark.parametrize("kind", [5, -1, 77, 2**40])
def test_a_loop_of_no_kind_is_refused(kind: int) -> None:
    found = graph(product(8, 12, 20))
    found["nodes"][number_of(found["nodes"], "tirx.For")]["data"]["kind"] = kind
    with pytest.raises(InvalidModule, match=f"kind {kind}"):
        load_module_json(json.dumps(found))


@pytest.mark.parametrize(("depth", "is_taken"), [(400, True), (600, False)])
def test_a_tower_of_nodes_is_refused(depth: int, is_taken: bool) -> None:
    tower: Any = tvm.tirx.IntImm("int32", 1)
    for _ in range(depth):
        tower = [tower]
    mod = product(8, 12, 20)
    mod["main"] = mod["main"].with_attr("tower", tower)
    text = tvm.ir.save_json(mod)
    if is_taken:
        assert tvm_ffi.structural_equal(load_module_json(text), mod)
    else:
        with pytest.raises(InvalidModule, match="within each other"):
            load_module_json(text)


@pytest.mark.parametrize("kind", ["None", "ffi.Module"])
def test_a_key_that_is_there_twice_is_refused(kind: str) -> None:
    text = tvm.ir.save_json(layer_norm(6, 10))
    with pytest.raises(InvalidModule, match="twice"):
        load_module_json(text.replace('{"type":"None"}', f'{{"type":"{kind}","type":"None"}}', 1))


def test_index_maps_are_checked_as_modules_are() -> None:
    found = json.loads(tvm.ir.save_json(IndexMap.from_func(lambda i, j: [j // 4, i, j % 4], index_dtype="int32")))
    assert foreign_kinds(json.dumps(found)) == ""
    found["nodes"][number_of(found["nodes"], "ffi.Array")]["data"].append(found["root_index"])
    assert foreign_kinds(json.dumps(found)) == "what is not TVM's JSON"


@pytest.mark.parametrize("mod", [layer_norm(5, 12), softmax(6, 10), mlp(3)])
def test_what_tvm_writes_is_taken(mod: tvm.IRModule) -> None:
    text = tvm.ir.save_json(mod)
    assert tvm_ffi.structural_equal(load_module_json(text), mod)
