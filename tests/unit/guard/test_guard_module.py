"""What a parsed module may hold."""

from __future__ import annotations

import json

import pytest
import tvm
import tvm_ffi

from loopwright.codegen.errors import InvalidModule, UnsupportedVersion
from tests.unit.guard.scripts import MATMUL, RELAX, modules, prim_funcs
from tuner.guard.module import check_callouts, load_module_json
from tuner.guard.tvmscript import check_tvmscript


def _function(
    value: str = "A[vi]", statement: str = "pass", params: str = "", loop: str = "", block: str = ""
) -> tvm.tirx.PrimFunc:
    return tvm.script.from_source(f"""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32"){params}):
    for i in T.serial(4, annotations={{{loop}}}):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            T.sblock_attr({{{block}}})
            {statement}
            C[vi] = {value}
""")


def test_ordinary_functions_call_nothing() -> None:
    findings = {name: check_callouts(function) for name, function in prim_funcs()}
    assert len(findings) > 25
    assert not {name: found for name, found in findings.items() if found}


CALLING_OUT = [
    ({"value": "T.call_extern('float32', 'system', A[vi])"}, "`tirx.call_extern` of 'system'"),
    ({"value": "T.call_pure_extern('float32', 'sinf', A[vi])"}, "`tirx.call_pure_extern` of 'sinf'"),
    ({"statement": "T.evaluate(T.call_packed('f', 1))"}, "tvm_call_packed"),
    ({"statement": "T.evaluate(T.call_cpacked('f', 1))"}, "tvm_call_cpacked"),
    ({"value": "T.call_intrin('float32', 'tirx.call_pure_extern', 'f', A[vi])"}, "call_pure_extern"),
    ({"value": "T.call_llvm_intrin('float32', 'llvm.x86.int', T.int8(3))"}, "llvm.x86.int"),
    ({"value": "T.Cast('float32', T.cuda.clock64())"}, "tirx.cuda.clock64"),
    ({"params": ", p: T.handle"}, "raw pointers"),
    ({"statement": "T.evaluate(T.address_of(A[0]))"}, "address_of"),
    ({"statement": "T.evaluate(T.reinterpret('handle', T.int64(4096)))"}, "raw pointers"),
    ({"loop": "'pragma_import_llvm': 'define void @f() { ret void }'"}, "pragma_import_llvm"),
    ({"loop": "'pragma_import_c': 'void f() {}'"}, "pragma_import_c"),
    ({"block": "'schedule_rule': 'os.system'"}, "schedule rule `os.system`"),
]


@pytest.mark.parametrize(("parts", "finding"), CALLING_OUT)
def test_what_leaves_the_function_is_found(parts: dict[str, str], finding: str) -> None:
    found = check_callouts(_function(**parts))
    assert any(finding in text for text in found), found


def test_attributes_that_redirect_the_code_generator_are_found() -> None:
    function = _function()
    assert check_callouts(function.with_attr("calling_conv", 1)) == ["has the attribute `calling_conv`"]
    assert any("target.Target" in text for text in check_callouts(function.with_attr("target", tvm.target.Target("c"))))


@pytest.mark.parametrize("attribute", ["extern_scope", "pragma_import_llvm", "device_scope"])
def test_attribute_statements_are_listed(attribute: str) -> None:
    function = tvm.script.from_source(f"""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32")):
    with T.attr(0, "{attribute}", "x"):
        A[0] = T.float32(1)
""")
    assert any(attribute in text for text in check_callouts(function))


@pytest.mark.parametrize("name", ["llvm.exp.f32", "llvm.fma.f32", "llvm.sqrt.f32"])
def test_llvm_arithmetic_passes(name: str) -> None:
    args = ", ".join(["A[vi]"] * (3 if "fma" in name else 1))
    assert check_callouts(_function(value=f"T.call_llvm_pure_intrin('float32', '{name}', {args})")) == []


def test_call_of_another_function_is_found() -> None:
    mod = tvm.script.from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def g(x: T.int32) -> T.int32:
        return x

    @T.prim_func
    def f(x: T.int32):
        T.evaluate(Module.g(x))
""")
    assert any("another function" in text for text in check_callouts(mod["f"]))


def test_saved_modules_load_equal() -> None:
    for name, mod in modules():
        assert tvm_ffi.structural_equal(load_module_json(tvm.ir.save_json(mod)), mod), name


@pytest.mark.parametrize("version", ["0.26.0", "0.27.0.post2", None])
def test_another_version_is_refused(version: str | None) -> None:
    graph = json.loads(tvm.ir.save_json(tvm.script.from_source(check_tvmscript(RELAX))))
    graph["metadata"] = {} if version is None else {"tvm_version": version}
    with pytest.raises(UnsupportedVersion, match=version or "unknown version"):
        load_module_json(json.dumps(graph))


@pytest.mark.parametrize(
    "text",
    [
        *("", "not JSON", "null", "1", "[]", "{}", '{"nodes": [], "root_index": 0}', "[" * 100_000),
        '{"nodes": [{"type": "None"}], "root_index": "0"}',
        '{"nodes": [1], "root_index": 0}',
        '{"nodes": {}, "root_index": 0}',
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidModule, match="send"):
        load_module_json(text)


def test_a_function_is_not_a_module() -> None:
    function = tvm.script.from_source(check_tvmscript(MATMUL))
    with pytest.raises(InvalidModule, match=r"tirx\.PrimFunc.*tvm\.ir\.save_json"):
        load_module_json(tvm.ir.save_json(function))


@pytest.mark.parametrize("kind", ["runtime.Module", "ffi.Module", "ffi.Function", "ir.EnvFunc", "ffi.OpaquePyObject"])
def test_compiled_code_in_a_module_is_refused(kind: str) -> None:
    graph = json.loads(tvm.ir.save_json(tvm.script.from_source(check_tvmscript(RELAX))))
    graph["nodes"].append({"type": kind, "data": "x"})
    with pytest.raises(InvalidModule, match=kind):
        load_module_json(json.dumps(graph))


def test_types_of_library_calls_are_taken() -> None:
    script = """@R.function
def main(x: R.Tensor((4,), "float32")):
    return R.call_dps_packed("env.relu", (x,), out_ty=R.Tensor((4,), "float32"))
"""
    text = tvm.ir.save_json(tvm.IRModule({"main": tvm.script.from_source(script)}))
    assert tvm_ffi.structural_equal(load_module_json(text), tvm.ir.load_json(text))
    with pytest.raises(InvalidModule, match=r"ir\.EnvFunc"):
        load_module_json(text.replace("tvm.relax.type.infer_by_ty_args", "tvm.relax.type.infer_view_ty"))


def test_broken_graph_is_refused() -> None:
    graph = json.loads(tvm.ir.save_json(tvm.script.from_source(check_tvmscript(RELAX))))
    graph["nodes"][graph["root_index"]]["data"] = {}
    with pytest.raises(InvalidModule, match="cannot load"):
        load_module_json(json.dumps(graph))
