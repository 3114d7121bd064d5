"""What CUDA's compiler says reaches users without the rest of its log."""

from __future__ import annotations

import pytest

from loopwright.codegen.errors import CodeRefused
from loopwright.codegen.gpu.compiler_errors import compiler_errors, refusals_in_words
from tests.support.nvrtc import cubin

NVCC = """
// the whole source
Compilation error:
tvm_kernels.cu(7): warning #177-D: variable "error" was declared but never referenced
tvm_kernels.cu(12): error: no operator "=" matches these operands
tvm_kernels.cu(13): error: no operator "=" matches these operands
3 errors detected in the compilation of "tvm_kernels.cu".
"""


def test_the_errors_of_nvrtc_are_shown_without_its_warnings() -> None:
    with pytest.raises(CodeRefused) as refused, refusals_in_words():
        cubin("__global__ void f(float* a) { a[0] = nothing; int b = ; }", "sm_90")
    assert str(refused.value) == (
        'CUDA\'s compiler refuses the code: identifier "nothing" is undefined; expected an expression'
    )


def test_the_errors_of_ptxas_are_shown() -> None:
    source = """
        extern "C" __global__ void f(float* a) {
            __shared__ float b[20000];
            b[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[0] = b[100];
        }
    """
    with (
        pytest.raises(CodeRefused, match=r"'f' uses too much shared data \(0x13880 bytes, 0xc000 max\)$"),
        refusals_in_words(),
    ):
        cubin(source, "sm_90")


def test_the_errors_of_nvcc_are_shown_once_each_without_the_source() -> None:
    assert compiler_errors(NVCC) == 'no operator "=" matches these operands'
    many = "Compilation error:" + "".join(f"\na.cu({n}): error: number {n}" for n in range(5))
    assert compiler_errors(many) == "number 0; number 1; number 2; and 2 more"
    long = "Compilation error:" + "".join(f"\na.cu({n}): error: number {n} " + "of a type " * 50 for n in range(5))
    assert len(compiler_errors(long)) < 450


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(LookupError, match="error: of another kind"), refusals_in_words():
        raise LookupError("error: of another kind")
