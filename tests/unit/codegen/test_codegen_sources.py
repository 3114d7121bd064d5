"""Where functions come from, kept through the passes and through fusion."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax

from loopwright.codegen.graph.sources import PLACES, SOURCES, SourceBuilder, places
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.source_text import shortened
from loopwright.codegen.target import target_from
from tuner.inspection.submission import read_module
from tuner.task import extract_tasks

LLVM = target_from("llvm")


def built(*layers: str, relu: str = "act") -> tvm.IRModule:
    """Return a chain of products with a ReLU behind each, one a source."""
    builder = SourceBuilder()
    x, w = (relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in (("x", (6, 24)), ("w", (24, 24))))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            value = x
            for layer in layers:
                builder.source = layer
                value = builder.emit(relax.op.matmul(value, w))
                builder.source = relu
                value = builder.emit(relax.op.nn.relu(value))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.with_sources(builder.get())


def test_a_fused_function_comes_from_its_product_at_each_place_that_calls_it() -> None:
    [task] = extract_tasks(built("layers.0.fc", "layers.1.fc", "layers.2.fc"), LLVM).tasks
    assert (task.weight, task.sources) == (3, ("layers.0.fc", "layers.1.fc", "layers.2.fc"))
    assert "relu" in task.workload.name


def test_a_source_that_is_called_twice_is_one_place() -> None:
    [task] = extract_tasks(built("tied", "tied", "other"), LLVM).tasks
    assert (task.weight, task.sources) == (3, ("tied", "other"))


def test_sources_do_not_change_a_workload() -> None:
    with_sources, without = built("a", "b"), built("a", "b").without_attr(SOURCES)
    [first], [second] = extract_tasks(with_sources, LLVM).tasks, extract_tasks(without, LLVM).tasks
    assert first.workload.hash == second.workload.hash
    assert (first.sources, second.sources) == (("a", "b"), ())
    functions = {
        str(var.name_hint): function_digest(func)
        for var, func in lower(with_sources, LLVM).functions.items()
        if isinstance(func, tvm.tirx.PrimFunc)
    }
    assert first.workload.hash in functions.values()


def test_what_a_rewriting_adds_comes_from_what_it_replaces() -> None:
    """A product of three axes becomes one of two, between views."""
    builder = SourceBuilder()
    x, w = (relax.Var(n, relax.TensorType(shape, "float32")) for n, shape in (("x", (2, 5, 16)), ("w", (16, 24))))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            builder.source = "encoder.fc"
            product = builder.emit(relax.op.matmul(x, w))
            builder.source = "head"
            result = builder.emit_output(builder.emit(relax.op.sum(product, axis=1)))
        builder.emit_func_output(result)
    found = extract_tasks(builder.with_sources(builder.get()), LLVM).tasks
    assert {task.workload.name: task.sources for task in found} == {"matmul": ("encoder.fc",), "sum": ("head",)}


@pytest.mark.parametrize(
    "attribute",
    [{SOURCES: {"v0_": 5, "v1_": "fine\x1b[31m"}}, {SOURCES: ["v0_"]}, {SOURCES: 7}, {PLACES: {"fused": "text"}}],
)
def test_a_module_may_claim_anything(attribute: dict[str, object]) -> None:
    mod = built("a").without_attr(SOURCES)
    for name, value in attribute.items():
        mod = mod.with_attr(name, value)
    [task] = extract_tasks(mod, LLVM).tasks
    assert not any("\x1b" in source for source in task.sources)


def test_many_places_of_a_long_name_are_cut() -> None:
    mod = tvm.IRModule().with_attr(PLACES, {"f": [f"{place}{'x' * 300}" for place in range(3000)]})
    [(_, found)] = places(mod).items()
    assert len(found) == 1000
    assert all(len(source) == 200 for source in found)


SCRIPT = """
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 16), "float32"), w: R.Tensor((16, 32), "float32")) -> R.Tensor((8, 32), "float32"):
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.nn.softmax(lv)
            R.output(lv1)
        return lv1
"""


def test_calls_of_a_script_come_from_their_lines() -> None:
    found = extract_tasks(read_module("tvmscript", SCRIPT), LLVM).tasks
    assert {task.workload.name: task.sources for task in found} == {"matmul": ("main:9",), "softmax": ("main:10",)}


def test_a_function_of_a_script_comes_from_the_line_of_its_definition() -> None:
    script = """@T.prim_func(s_tir=True)
def scale(A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32")):
    for i in range(24):
        with T.sblock("scale"):
            v = T.axis.spatial(24, i)
            B[v] = A[v] * T.float32(2)
"""
    [task] = extract_tasks(read_module("tvmscript", script), LLVM).tasks
    assert task.sources == ("scale:2",)


def test_a_script_that_says_where_it_comes_from_is_believed() -> None:
    mod = built("layers.4.fc", relu="layers.4.act")
    [task] = extract_tasks(read_module("tvmscript", mod.script()), LLVM).tasks
    assert task.sources == ("layers.4.fc",)


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        ([], ""),
        (["head"], "head"),
        (["layers.0.fc", "layers.1.fc"], "layers.{0,1}.fc"),
        ([f"layers.{n}.fc" for n in range(12)], "layers.{0..11}.fc"),
        (["layers.0.fc", "layers.2.fc", "layers.10.fc"], "layers.{0,2,10}.fc"),
        (["a.q", "a.k", "a.v"], "a.{q,k,v}"),
        (["a.q", "head"], "a.q, head"),
        (["/enc/layer.0/MatMul", "/enc/layer.1/MatMul"], "/enc/layer.{0,1}/MatMul"),
        (["a/b", "a.b"], "a/b, a.b"),
        ([f"m.{name}" for name in "abcdefghij"], "m.{a,b,c,d,e,f,… 4 more}"),
    ],
)
def test_places_in_short(sources: list[str], text: str) -> None:
    assert shortened(sources) == text
