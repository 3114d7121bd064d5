"""The GPU rule for a matrix times vectors: its programs compute the same in one kernel, and become machine code."""

from __future__ import annotations

import pytest
import tvm
from tvm import te, topi

from loopwright.codegen.rule import RULE
from tests.support.cases import cases, first
from tests.support.gpu_products import product
from tests.support.gpu_rules import TARGET, check_machine_code, check_rule, programs_of, source_of
from tests.support.rule_programs import function, sketches_of
from tuner.space.builtin import builtin_space

PRODUCTS = {
    "transposed": product(1, 64, 512),
    "transposed, columns of a prime": product(1, 97, 256, epilogue=True),
    "transposed, fp16, sums fp32, eight vectors": product(8, 48, 256, dtype="float16", epilogue=True),
    "transposed, fp16, sums fp16": product(2, 64, 128, dtype="float16", sums="float16"),
    "transposed, bf16, sums bf16": product(1, 32, 128, dtype="bfloat16", sums="bfloat16"),
    "transposed, batched": product(1, 40, 64, batches=(2, 3), epilogue=True),
    "transposed, an odd number of vectors": product(3, 36, 80),
    "in order": product(1, 128, 256, transposed=False),
    "in order, depth of a prime": product(1, 64, 97, transposed=False, epilogue=True),
    "in order, fp16, sums fp32, eight vectors": product(8, 128, 96, dtype="float16", transposed=False, epilogue=True),
    "in order, bf16, sums fp32": product(1, 96, 64, dtype="bfloat16", transposed=False, epilogue=True),
    "in order, fp16, sums fp16": product(2, 64, 96, dtype="float16", sums="float16", transposed=False),
    "in order, batched": product(2, 48, 40, batches=(3,), transposed=False),
    "the vector on the right": product(96, 1, 128),
}
MULTIPLIED = cases(
    PRODUCTS,
    "transposed, columns of a prime",
)


@pytest.mark.parametrize(("name", "every"), MULTIPLIED)
def test_a_product_with_vectors_computes_the_same_in_one_kernel(name: str, every: bool) -> None:
    check_rule(PRODUCTS[name], "gpu_gemv", every)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "every"), cases(PRODUCTS, "in order, fp16, sums fp32, eight vectors"))
def test_a_product_with_vectors_becomes_machine_code(name: str, every: bool) -> None:
    check_machine_code(PRODUCTS[name], "gpu_gemv", every)


@pytest.mark.parametrize(
    ("mod", "access"),
    first(
        1,
        [
            (product(1, 64, 512), "= *(float4*)(B_ptr"),
            (product(1, 64, 512, dtype="float16"), "= *(uint4*)(B_ptr"),
            (product(1, 64, 512, dtype="bfloat16", transposed=False), "= *(uint4*)(B_ptr"),
        ],
    ),
)
def test_the_seeds_read_the_matrix_128_bits_at_a_time_and_no_other_way(mod: tvm.IRModule, access: str) -> None:
    for schedule in programs_of(mod, "gpu_gemv", 0):
        source = source_of(mod, schedule)
        assert access in source
        assert source.count("B_ptr + ") + source.count("B_ptr[") == source.count(access)


def test_threads_that_share_a_column_add_up_by_shuffles() -> None:
    mod = product(1, 64, 512)
    [first, *_] = programs_of(mod, "gpu_gemv", 0)
    assert "__shfl_down_sync" in source_of(mod, first)


@pytest.mark.whole
def test_a_product_that_the_rule_cannot_schedule_is_left_to_tvm() -> None:
    a, b = te.placeholder((1, 64), name="A"), te.placeholder((64, 64), name="B")
    c = topi.nn.matmul(a, b)
    unlike = {
        "nine vectors": product(9, 64, 64),
        "a depth of a prime": product(1, 64, 97),
        "columns of a prime": product(1, 97, 64, transposed=False),
        "no column": product(1, 1, 64),
        "bytes": product(1, 64, 64, dtype="int8", sums="int32"),
        "a transposed result": function(a, b, topi.transpose(c)),
        "a softmax": function(a, b, topi.nn.softmax(c)),
    }
    assert [name for name, mod in unlike.items() if sketches_of(builtin_space(mod, TARGET, 1), RULE + "gpu_gemv")] == []
