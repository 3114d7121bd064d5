"""What follows a product or a convolution element by element is computed in its kernel, in all sketches for GPUs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import islice

import pytest
import tvm
from tvm import te, topi
from tvm.s_tir import Schedule
from tvm.script import tirx as T

from loopwright.codegen.program.digest import normal_form
from tests.support.gpu_rules import TARGET, check_kernels, kernels, source_of
from tests.support.rule_programs import function
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.design_space import DesignSpace
from tuner.space.gpu_epilogues import inlined

_SIZE = 128


def dense_gelu(dtype: str, sums: str) -> tvm.IRModule:
    """A product with a bias and GELU, cast back to the type of its operands."""
    a, b = (te.placeholder((_SIZE, _SIZE), dtype, name=name) for name in "AB")
    bias = te.placeholder((_SIZE,), sums, name="bias")
    shifted = topi.add(topi.nn.matmul(a, b, out_dtype=sums), bias)
    half, one, scale = (tvm.tirx.const(value, sums) for value in (0.5, 1.0, 0.7071))
    gelu = topi.multiply(topi.multiply(shifted, half), topi.add(topi.erf(topi.multiply(shifted, scale)), one))
    return function(a, b, bias, topi.cast(gelu, dtype))


def convolution_relu() -> tvm.IRModule:
    """A convolution with a bias for each channel and ReLU."""
    x, w = te.placeholder((1, 16, 16, 16), name="X"), te.placeholder((32, 16, 3, 3), name="W")
    bias = te.placeholder((1, 32, 1, 1), name="bias")
    return function(x, w, bias, topi.nn.relu(topi.add(topi.nn.conv2d_nchw(x, w, 1, 1, 1), bias)))


@T.prim_func(s_tir=True)
def strided_sums(x: T.handle, y: T.handle) -> None:
    """Sums of rows, kept in every second place, times two: TVM cannot inline what leaves gaps."""
    X, out = T.match_buffer(x, (64, 64)), T.match_buffer(y, (64,))
    sums, spread, again = (T.sblock_alloc_buffer((64,)), T.sblock_alloc_buffer((128,)), T.sblock_alloc_buffer((64,)))
    for i, k in T.grid(64, 64):
        with T.sblock("sums"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            with T.init():
                sums[v_i] = T.float32(0)
            sums[v_i] = sums[v_i] + X[v_i, v_k]
    for i in range(64):
        with T.sblock("spread"):
            v_i = T.axis.spatial(64, i)
            spread[v_i * 2] = sums[v_i]
    for i in range(64):
        with T.sblock("again"):
            v_i = T.axis.spatial(64, i)
            again[v_i] = spread[v_i * 2]
    for i in range(64):
        with T.sblock("out"):
            v_i = T.axis.spatial(64, i)
            out[v_i] = spread[v_i * 2] + again[v_i]


def silu() -> tvm.IRModule:
    """A product of which each element is multiplied by its own sigmoid."""
    a, b = (te.placeholder((_SIZE, _SIZE), name=name) for name in "AB")
    c = topi.nn.matmul(a, b)
    return function(a, b, topi.multiply(c, topi.sigmoid(c)))


def first_of_each_sketch(space: DesignSpace) -> Iterator[Schedule]:
    """Yield a program of each of the space's sketches; one of TVM's may have none in hundreds of draws."""
    for trace in space.traces:
        yield from islice(filter(None, (space.replay(trace, seed) for seed in range(1, 300))), 1)


MODULES = {
    "fp32": dense_gelu("float32", "float32"),
    "fp16, sums fp32": dense_gelu("float16", "float32"),
    "fp16, sums fp16": dense_gelu("float16", "float16"),
    "bf16, sums fp32": dense_gelu("bfloat16", "float32"),
    "silu": silu(),
    "convolution": convolution_relu(),
}


@functools.cache
def schedules(name: str) -> list[Schedule]:
    return list(first_of_each_sketch(builtin_space(MODULES[name], TARGET, 1)))


@pytest.mark.parametrize(
    "name",
    [
        *("fp32", "bf16, sums fp32"),
        *(pytest.param(f"fp16, sums {sums}", marks=pytest.mark.whole) for sums in ("fp32", "fp16")),
        *(pytest.param(name, marks=pytest.mark.whole) for name in ("silu", "convolution")),
    ],
)
def test_what_follows_is_computed_in_the_kernel_of_every_sketch(name: str) -> None:
    found = schedules(name)
    assert len(found) > 1
    assert [kernels(source_of(MODULES[name], schedule)) for schedule in found] == [1] * len(found)


@pytest.mark.parametrize("name", ["fp32", "silu"])
def test_programs_with_what_follows_inlined_compute_the_same(name: str) -> None:
    # LLVM has no barriers for asynchronous copies, which those with a software pipeline need.
    without_pipeline = [schedule for schedule in schedules(name) if "software_pipeline" not in schedule.mod.script()]
    assert without_pipeline
    for schedule in without_pipeline:
        check_kernels(MODULES[name], schedule)


def test_the_sketches_of_tvm_alone_are_as_tvm_makes_them() -> None:
    mod = MODULES["fp32"]
    first = next(first_of_each_sketch(stock_space(mod, TARGET, 1)))
    assert kernels(source_of(mod, first)) == 2


def test_a_chain_is_left_to_the_rules_of_tvm() -> None:
    assert len(inlined(convolution_relu()).trace.insts) == 0


def test_what_tvm_cannot_inline_stays_as_it_is() -> None:
    mod = normal_form(strided_sums)
    assert len(inlined(mod).trace.insts) == 0
    assert builtin_space(mod, TARGET, 1).traces
