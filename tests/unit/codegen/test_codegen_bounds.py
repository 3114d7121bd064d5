"""What is proven to stay inside of its buffers, and that nothing is called so that leaves them."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx
from tvm.s_tir.meta_schedule.testing import te_workload

from loopwright.codegen.program.bounds import unproven

HEAD = """
@T.prim_func(s_tir=True)
def main({params}):
"""


def function(body: str, a: str = "(16,)", b: str = "(16,)", index: str = "(16,)", dtype: str = "int32") -> str:
    params = f'A: T.Buffer({a}, "float32"), B: T.Buffer({b}, "float32"), I: T.Buffer({index}, "{dtype}")'
    return HEAD.format(params=params) + "\n".join("    " + line for line in body.strip("\n").splitlines())


def findings(source: str) -> list[str]:
    return unproven(tvm.script.from_source(source))


def block(store: str, extent: int = 16, axis: str = "i", domain: str = "16", extra: str = "") -> str:
    lines = [f"for i in range({extent}):", '    with T.sblock("b"):', f"        v = T.axis.spatial({domain}, {axis})"]
    lines += [f"        {line}" for line in [*filter(None, extra.split("\n")), *store.split("\n")]]
    return "\n".join(lines)


def allocated(arguments: str, store: str) -> str:
    """Return a function with a buffer of its own, S."""
    return function(block(store).replace("for i", f"S = T.sblock_alloc_buffer({arguments})\nfor i", 1))


INSIDE = {
    "as they are": function(block("B[v] = A[v]")),
    "mirrored": function(block("B[v] = A[15 - v]")),
    "padded": function(block("B[v] = T.if_then_else(1 <= v and v < 15, A[v - 1] + A[v + 1], T.float32(0))")),
    "otherwise": function(block("B[v] = T.if_then_else(v < 1, T.float32(0), A[v - 1])")),
    "a branch": function(block("if v > 0:\n    B[v - 1] = A[v]")),
    "its other": function(block("if v == 0:\n    B[v] = A[v]\nelse:\n    B[v - 1] = A[v]")),
    "divided": function(block("B[v] = A[v // 4] + A[v % 4 * 4]")),
    "clamped data": function(block("B[v] = A[T.min(T.max(I[v], 0), 15)]")),
    "a part of the domain": function(block("B[v] = A[v]", extent=20, axis="i", extra="T.where(i < 16)")),
    "one name": function(block("k: T.let[T.int32] = v + 0\nB[v] = A[k]")),
    "data that counts from the end, of 32 bits": function(
        block("B[v] = A[T.min(T.max(T.if_then_else(I[v] < 0, I[v] + 16, I[v]), 0), 15)]")
    ),
    "clamped data in a row": function(block("B[v] = A[v // 4 * 4 + T.min(T.max(I[v], 0), 3)]")),
    "a quotient of clamped data": function(block("B[v] = A[T.min(T.max(I[v], 0), 31) // 2]")),
    "a name for clamped data": function(block("k: T.let[T.int32] = T.min(T.max(I[v], 0), 15)\nB[v] = A[k]")),
    "two dimensions": function(block("B[v] = A[v // 4, v % 4]"), a="(4, 4)"),
    "a window": function(block("for k in range(3):\n    B[v] = B[v] + A[v + k]"), a="(18,)"),
    "a vector of indices": function(block("B[T.Ramp(v * 4, 1, 4)] = A[T.Ramp(v * 4, 1, 4)]", extent=4, domain="4")),
    "a window of a tile whose last part is left out": function(
        block(
            "for t, k in T.grid(4, 3):\n    if v * 4 + t < 10:\n        B[v] = B[v] + A[v * 8 + t * 2 + k]",
            3,
            domain="3",
        ),
        a="(21,)",
    ),
    "bits of data": function(block("B[v] = A[T.bitwise_and(I[v], 15)] + A[T.shift_right(I[v], 28) + 8]")),
    "a bounded loop over data": function(block("for k in range(T.min(I[0], 16)):\n    B[v] = A[k]")),
}
OUTSIDE = {
    "one further": function(block("B[v] = A[v + 1]")),
    "one before": function(block("B[v - 1] = A[v]")),
    "data": function(block("B[v] = A[I[v]]")),
    "a store by data": function(block("B[I[v]] = A[v]")),
    "data with an offset": function(block("B[v] = A[I[v] + 5]")),
    "data that is clamped on one side": function(block("B[v] = A[T.min(I[v], 15)]")),
    "a loop as long as data says": function(block("for k in range(I[0] + 64):\n    B[v] = A[v + k]")),
    "the wrong side of a condition": function(block("B[v] = T.if_then_else(v < 1, A[v - 1], T.float32(0))")),
    "a selection, whose values are both computed": function(block("B[v] = T.Select(v > 0, A[v - 1], T.float32(0))")),
    "a limit that the simplifier drops in a selection": function(
        block("B[v] = T.Select(v < 4, A[T.min(v, 3)], T.float32(0))"), a="(4,)"
    ),
    "a condition on data that a store changes": function(
        block("if I[0] < 16 and I[0] >= 0:\n    I[0] = 1000000\n    B[v] = A[I[0]]")
    ),
    "a domain that is smaller than its values": function(block("B[v] = A[v]", extent=1000)),
    "a domain with an offset": function(block("B[v] = A[v]", domain="(8, 24)", axis="i + 8")),
    "a product that overflows": function(block("B[v] = A[(v * 200000000) % 16]")),
    "a product of 16 bits": function(block("B[v] = A[T.Cast('int32', T.Cast('int16', v) * T.int16(20000)) % 16]")),
    "a loop that starts at data, which a store changes": function(
        block("for k in range(I[0], I[0] + 16):\n    I[0] = -1000000\n    B[v] = A[k - I[0]]")
    ),
    "an axis that starts at data, which a store changes": function(
        block("I[0] = -1000000\nB[v - I[0]] = T.float32(0)", domain="(I[0], I[0] + 16)", axis="I[0] + i")
    ),
    "an axis that data decides": function(
        block("for k in range(v, v + 16):\n    I[0] = 0\n    B[k - v] = A[k - v]", axis="T.min(T.max(I[0], 0), 15)")
    ),
    "a name for data": function(block("k: T.let[T.int32] = I[v]\nB[v] = A[k]")),
    "a rounded number": function(block("B[v] = A[T.Cast('int32', A[v])]")),
    "a vector of indices": function(block("B[T.Ramp(v, 1, 4)] = A[T.Ramp(v, 1, 4)]")),
    "an element of what is allocated": function(
        block("B[v] = S[I[0]]", extra="").replace("for i", 'S = T.sblock_alloc_buffer((4,), "float32")\nfor i', 1)
    ),
    "extents whose product overflows 32 bits": allocated('(65536, 65537), "int8"', "S[v, v] = T.int8(0)"),
    "extents whose product overflows 64 bits": allocated(
        '(T.int64(2**33), T.int64(2**31)), "int8"', "S[v, v] = T.int8(0)"
    ),
    "an assumption": function(block("T.evaluate(T.assume(v < 16))\nif v < 16:\n    B[v] = A[v]", 100, domain="100")),
    "a region that is narrower than what is read": function(
        block("B[v] = A[v]", extra='T.reads(A[0:1])\nT.sblock_attr({"explicit_read_region": [1]})')
    ),
    "strides by an annotation": function(
        block("B[v] = A[v]", extra='T.sblock_attr({"buffer_dim_align": [[0, 0, -1000010, 1]]})')
    ),
    "a shift of data that overflows": function(
        block("B[v] = A[T.shift_left(T.max(T.min(I[v] * 268435456, 1073741824), 0), 2) // 67108864]")
    ),
    "a limit that overflow would make superfluous": function(block("B[v] = A[T.max(T.min(15 - I[v] * I[v], 15), 0)]")),
    "a shift of data by data": function(block("B[v] = A[T.max(T.min(T.shift_right(I[v], I[v]), 15), 0)]")),
    "a product of data that overflows behind its limits": function(
        block("B[v] = A[T.min(T.max(I[v], 0), 15) * 300000000 // 300000000]")
    ),
}


@pytest.mark.parametrize("source", INSIDE.values(), ids=INSIDE)
def test_what_stays_inside_is_proven(source: str) -> None:
    assert findings(source) == []


@pytest.mark.parametrize("source", OUTSIDE.values(), ids=OUTSIDE)
def test_what_may_leave_its_buffer_is_named(source: str) -> None:
    assert findings(source)


def test_a_finding_names_the_index_and_the_limits() -> None:
    assert findings(OUTSIDE["one further"]) == ["A[v + 1], where v + 1 may be outside of 0 to 15"]


def test_a_name_may_not_mean_two_things_at_once() -> None:
    """TVMScript cannot write it, but JSON can: behind the inner loop the name is the outer loop's again."""
    func = tvm.script.from_source(
        HEAD.format(params='A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")')
        + "    for i in range(1000):\n        B[0] = A[0]\n"
    )
    a, b = func.params
    i = func.body.loop_var
    store = tirx.BufferStore(b, tirx.BufferLoad(a, [i]), [i])
    inner = tirx.For(i, 0, 4, tirx.ForKind.SERIAL, store)
    outer = tirx.For(i, 0, 1000, tirx.ForKind.SERIAL, tirx.SeqStmt([inner, store]))
    assert "i is bound twice" in unproven(func.with_body(outer))


@pytest.mark.parametrize(("is_inside", "expected"), [(True, []), (False, ["is a view, or of another scope"])])
def test_a_buffer_is_none_where_its_scope_has_ended(is_inside: bool, expected: list[str]) -> None:
    func = tvm.script.from_source(function(block("B[v] = A[v]")))
    loop, buffer = func.body.block.body, tvm.tirx.decl_buffer((64,), "float32", "S")
    realize = loop.body
    axis = realize.block.iter_vars[0].var
    made = [tvm.tirx.AllocBuffer(buffer), tvm.tirx.BufferStore(buffer, tvm.tirx.FloatImm("float32", 1.0), [axis])]
    used = tvm.tirx.BufferStore(realize.block.body.buffer, buffer[axis], [axis])
    branch = tvm.tirx.SeqStmt([*made, used] if is_inside else made)
    case = tvm.tirx.IfThenElse(axis < 8, branch, None)
    changed = tvm.s_tir.SBlock(
        *(getattr(realize.block, field) for field in ("iter_vars", "reads", "writes", "name_hint")),
        case if is_inside else tvm.tirx.SeqStmt([case, used]),
    )
    body = tvm.tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, tvm.s_tir.SBlockRealize(realize.iter_values, True, changed)
    )
    found = unproven(func.with_body(body))
    assert len(found) == len(expected)
    assert all(words in finding for words, finding in zip(expected, found, strict=True))


def test_a_name_means_nothing_where_its_loop_has_ended() -> None:
    """JSON can use it there, when the loop's own variable has other limits."""
    func = tvm.script.from_source(
        HEAD.format(params='A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")')
        + "    for i in range(4):\n        k: T.let[T.int32] = i\n        B[i] = A[k]\n"
    )
    assert unproven(func) == []
    loop = func.body
    bind, store = loop.body.seq
    long = tirx.For(loop.loop_var, 0, 1000, tirx.ForKind.SERIAL, tirx.SeqStmt([bind, tirx.Evaluate(0)]))
    short = tirx.For(loop.loop_var, 0, 4, tirx.ForKind.SERIAL, store)
    assert unproven(func.with_body(tirx.SeqStmt([long, short]))) == ["A[k], where k may be outside of 0 to 3"]


@pytest.mark.parametrize("name", ["C1D", "C2D", "C3D", "DEP", "GRP", "DIL", "T2D", "CAP", "NRM", "SFM", "CBR", "TBG"])
def test_tvms_sample_workloads_are_proven(name: str) -> None:
    assert unproven(te_workload.create_te_workload(name, 0)) == []


def test_sums_of_thousands_of_terms_are_walked() -> None:
    func = tvm.script.from_source(
        HEAD.format(params='A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")')
        + "    for i in range(4):\n        B[i] = A[i]\n"
    )
    a, b = func.params
    loop = func.body
    for last, found in ((0, []), (1, ["A[i + 1], where i + 1 may be outside of 0 to 3"])):
        total = tirx.BufferLoad(a, [loop.loop_var + last])
        for _ in range(3000):
            total = total + tirx.BufferLoad(a, [loop.loop_var])
        body = tirx.For(loop.loop_var, 0, 4, tirx.ForKind.SERIAL, tirx.BufferStore(b, total, [loop.loop_var]))
        assert unproven(func.with_body(body)) == found


# A random access that is called proven is tried: at every point of its loops it must be inside.

_TERMS = st.sampled_from(["i", "j", "i + j", "i * 3 - j", "j // 2", "i % 5", "15 - i", "i * j", "T.max(i - j, 0)"])
_CONDITIONS = st.sampled_from(["True", "i < 4", "j > 2", "i + j < 9", "i - j >= 0", "i * 2 <= j"])


@settings(max_examples=150, deadline=None)
@given(term=_TERMS, offset=st.integers(-6, 6), condition=_CONDITIONS, extent=st.integers(1, 40))
def test_no_access_is_proven_that_leaves_its_buffer(term: str, offset: int, condition: str, extent: int) -> None:
    value = f"T.if_then_else({condition}, A[{term} + {offset}], T.float32(0))"
    if condition == "True":
        value = f"A[{term} + {offset}]"
    source = HEAD.format(params=f'A: T.Buffer(({extent},), "float32"), B: T.Buffer((16, 8), "float32")') + (
        f"    for i, j in T.grid(16, 8):\n        B[i, j] = {value}\n"
    )
    if unproven(tvm.script.from_source(source)) == []:
        python = {"T": type("T", (), {"max": max}), "True": True}
        for i in range(16):
            for j in range(8):
                names = {**python, "i": i, "j": j}
                if eval(condition, names):
                    assert 0 <= eval(f"{term} + {offset}", names) < extent


def test_random_windows_are_proven_exactly() -> None:
    """An affine window is proven where it fits, and only there."""
    draw = random.Random(1)
    for _ in range(60):
        stride, size, count = (draw.randint(1, 4) for _ in range(3))
        extent = draw.randint(1, 20)
        source = HEAD.format(params=f'A: T.Buffer(({extent},), "float32"), B: T.Buffer(({count},), "float32")') + (
            f"    for i, k in T.grid({count}, {size}):\n        B[i] = B[i] + A[i * {stride} + k]\n"
        )
        fits = bool(np.all((count - 1) * stride + size - 1 < extent))
        assert (findings(source) == []) is fits
