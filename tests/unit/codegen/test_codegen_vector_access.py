"""Vectors of more than four elements that TVM would write with an index for each are given another form."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.tirx import For, ForKind

from loopwright.codegen.gpu.vector_access import with_short_gathers
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.target import target_from

_CHANNELS = 16
_LENGTH = _CHANNELS * 9

COPY = """
@T.prim_func(s_tir=True)
def main(W: T.Buffer({shape}, "{dtype}"), C: T.Buffer((8, 144), "{dtype}")):
    for part, i in T.grid(3, 8 * 48 // {lanes}):
        for lane in T.vectorized({lanes}):
            with T.sblock("C"):
                o = T.axis.spatial(8, (i * {lanes} + lane) // 48)
                k = T.axis.spatial(144, part * 48 + (i * {lanes} + lane) % 48)
                {store}
"""
HIDDEN_RUN = "C[o, k] = W[o, k // 9, k % 9 // 3, k % 3]"
RUN = "C[o, k] = W[o, k]"
COLUMN = "C[o, k] = W[k, o]"
UNALIGNED = "C[o, k] = W[o, k + 1]"
ONE = "C[o, k] = W[o, 0]"
SCATTERED = "C[k % 8, o * 18 + k // 8] = W[o, k]"

SHARED = """
@T.prim_func(s_tir=True)
def main(W: T.Buffer((6, 10), "int8"), C: T.Buffer((6, 10), "int8")):
    S = T.sblock_alloc_buffer((60000, 60000, 6), "int8", scope="shared")
    for thread in T.thread_binding(20, thread="threadIdx.x"):
        for lane in T.vectorized(3):
            with T.sblock("S"):
                v = T.axis.spatial(6, (thread * 3 + lane) // 10)
                w = T.axis.spatial(10, (thread * 3 + lane) % 10)
                S[w, 59999, v] = W[v, w]
    for thread in T.thread_binding(20, thread="threadIdx.x"):
        for i in range(3):
            with T.sblock("C"):
                v, w = T.axis.remap("SS", [i, thread])
                C[v * 2 + w // 10, w % 10] = S[w % 10, 59999, v * 2 + w // 10]
"""

"""Of ``S``, 10x1x6 elements are allocated: 32 bits need not hold the places in what is written."""


def copy(store: str, shape: tuple[int, ...], lanes: int, dtype: str = "float16") -> tvm.IRModule:
    func = tvm.script.from_source(COPY.format(shape=shape, dtype=dtype, lanes=lanes, store=store))
    return tvm.IRModule({"main": func})


def lanes_of(mod: tvm.IRModule) -> int:
    """Return the extent of the only vectorised loop; 1 if there is none."""
    loops: list[For] = []
    tvm_ffi.structural_walk(mod["main"].body, (For, loops.append), order="pre")
    [lanes] = [int(loop.extent) for loop in loops if loop.kind == ForKind.VECTORIZED] or [1]
    return lanes


def result(mod: tvm.IRModule, w: np.ndarray) -> np.ndarray:
    c = tvm.runtime.empty((8, _LENGTH), str(w.dtype))
    tvm.compile(mod, target="llvm")(tvm.runtime.tensor(w), c)
    return np.asarray(c.numpy())


CASES = [
    (copy(HIDDEN_RUN, (8, _CHANNELS, 3, 3), 8), 8),
    (copy(HIDDEN_RUN, (8, _CHANNELS, 3, 3), 16, "int8"), 16),
    (copy(HIDDEN_RUN, (8, _CHANNELS, 3, 3), 2), 2),
    (copy(RUN, (8, _LENGTH), 8), 8),
    (copy(ONE, (8, _LENGTH), 8), 8),
    (copy(COLUMN, (_LENGTH, 8), 8), 4),
    (copy(COLUMN, (_LENGTH, 8), 16, "int8"), 4),
    (copy(COLUMN, (_LENGTH, 8), 6), 2),  # three would do, but not of float16
    (copy(COLUMN, (_LENGTH, 8), 6, "int8"), 3),
    (copy(RUN, (8, _LENGTH), 3), 1),
    (copy(RUN, (8, _LENGTH), 3, "float32"), 3),
    (copy(COLUMN, (_LENGTH, 8), 4), 4),
    (copy(UNALIGNED, (8, _LENGTH + 1), 8), 4),
    (copy(SCATTERED, (8, _LENGTH), 8), 4),
]


@pytest.mark.parametrize(("mod", "lanes"), CASES)
def test_only_vectors_of_more_than_four_that_are_no_run_are_shortened(mod: tvm.IRModule, lanes: int) -> None:
    assert lanes_of(with_short_gathers(mod)) == lanes


@pytest.mark.parametrize(("mod", "lanes"), [CASES[0], *CASES[5:9], *CASES[12:]])
def test_what_is_computed_stays_the_same(mod: tvm.IRModule, lanes: int) -> None:
    w = mod["main"].params[0]
    values = np.random.default_rng(lanes).integers(-100, 100, tuple(map(int, w.shape))).astype(str(w.dtype))
    np.testing.assert_array_equal(result(with_short_gathers(mod), values), result(mod, values))


def test_stores_to_shared_memory_that_tvm_finds_no_barrier_for_are_of_single_elements() -> None:
    mod = tvm.IRModule({"main": tvm.script.from_source(SHARED)})
    assert lanes_of(with_short_gathers(mod)) == 1
    compile_module(mod, target_from({"kind": "cuda", "arch": "sm_90"}))


def test_elements_that_only_their_indices_hide_to_be_adjacent_are_loaded_by_their_place() -> None:
    script = with_short_gathers(copy(HIDDEN_RUN, (8, _CHANNELS, 3, 3), 8)).script()
    assert "W[0, 0, 0, o * 144 + k]" in script


@pytest.mark.parametrize(("store", "shape"), [(RUN, (8, _LENGTH)), (ONE, (8, _LENGTH))])
def test_a_function_whose_vectors_are_runs_is_left_alone(store: str, shape: tuple[int, ...]) -> None:
    mod = copy(store, shape, 8)
    assert with_short_gathers(mod)["main"].same_as(mod["main"])
