"""Tensor intrinsics for products of float32 on tensor cores, whose factors are rounded to TF32.

TVM 0.27 has no type for TF32 and refuses fragments of float32. So the factors' fragments are arrays of each thread,
which CUDA functions of Loopwright's load, round and multiply. An array has a place for each element of the fragments,
of which a thread keeps four, from the place where the fragment starts: fragments start at least eight apart. CUDA's
compiler keeps the places that are used in registers. Sums are fragments of ``nvcuda::wmma``, which TVM knows.
(CUDA C++ Programming Guide, "Warp Matrix Functions", alternate floating point.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.s_tir import TensorIntrin
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from loopwright.codegen.math_mode import TF32_FUNCTIONS, TF32_INTRINSICS

_NAME = TF32_INTRINSICS + "16x16x8_"
LOAD_A, LOAD_B, LOAD_B_COLUMNS = _NAME + "load_a", _NAME + "load_b", _NAME + "load_b_trans"
FRAGMENT = "local"
"""Scope of the factors' fragments."""
_M, _N, _K = 16, 16, 8
_DTYPE = "float32"
_SHARED = "shared.dyn"
_SUMS = "wmma.accumulator"
_FRAGMENT_OF = (
    "nvcuda::wmma::fragment<nvcuda::wmma::matrix_{which}, 16, 16, 8, nvcuda::wmma::precision::tf32, {layout}>"
)
_LAYOUTS = {False: "nvcuda::wmma::row_major", True: "nvcuda::wmma::col_major"}
_LOAD = """
__forceinline__ __device__ void {name}(float* registers, const float* shared, int stride) {{
  {fragment} fragment;
  nvcuda::wmma::load_matrix_sync(fragment, shared, stride);
  #pragma unroll
  for (int i = 0; i < fragment.num_elements; ++i) registers[i] = nvcuda::wmma::__float_to_tf32(fragment.x[i]);
}}
"""
_MULTIPLY = """
__forceinline__ __device__ void {name}(
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float>* sums, int index, const float* first,
    const float* second) {{
  {first} a;
  {second} b;
  #pragma unroll
  for (int i = 0; i < a.num_elements; ++i) a.x[i] = first[i];
  #pragma unroll
  for (int i = 0; i < b.num_elements; ++i) b.x[i] = second[i];
  nvcuda::wmma::mma_sync(sums[index], a, b, sums[index]);
}}
"""


def register() -> None:
    """Register the intrinsics, once. TVM's own for cuda must be loaded: use `loopwright.codegen.program.intrinsics`."""
    from tvm.s_tir.tensor_intrin import cuda

    if TensorIntrin.get(LOAD_A, allow_missing=True) is not None:
        return
    TensorIntrin.register(_NAME + "fill", *cuda.get_wmma_fill_intrin(_M, _N, _K, _DTYPE))
    TensorIntrin.register(_NAME + "store", *cuda.get_wmma_store_intrin(_M, _N, _K, _DTYPE, _SHARED))
    TensorIntrin.register(LOAD_A, *_load((_M, _K), "a", in_columns=False))
    for in_columns in (False, True):
        rows, columns = (_N, _K) if in_columns else (_K, _N)
        TensorIntrin.register(_load_b(in_columns), *_load((rows, columns), "b", in_columns=in_columns))
        TensorIntrin.register(_multiplication(in_columns), *_multiply((rows, columns), cuda, in_columns=in_columns))


def groups() -> list[Mapping[str, str]]:
    """Return the names of the intrinsics of a product, as `MultiLevelTilingTensorCore` takes them.

    The first group is for a second factor in rows, the other one for one in columns.
    """
    return [
        {
            "init": _NAME + "fill",
            "load_a": LOAD_A,
            "load_b": _load_b(in_columns),
            "compute": _multiplication(in_columns),
            "store": _NAME + "store",
        }
        for in_columns in (False, True)
    ]


def _load_b(in_columns: bool) -> str:
    return LOAD_B_COLUMNS if in_columns else LOAD_B


def _multiplication(in_columns: bool) -> str:
    return f"{_NAME}multiply{'_trans' if in_columns else ''}"


def _load(shape: tuple[int, int], which: str, *, in_columns: bool) -> tuple[PrimFunc, PrimFunc]:
    """Return the description and the code of loading a fragment of a factor, ``a`` or ``b``."""
    rows, columns = shape
    name = f"{TF32_FUNCTIONS}load_{which}{'_trans' if in_columns else ''}"
    source = _LOAD.format(name=name, fragment=_FRAGMENT_OF.format(which=which, layout=_LAYOUTS[in_columns]))

    @T.prim_func(s_tir=True)
    def description(shared: T.handle, fragment: T.handle) -> None:
        S = T.match_buffer(shared, shape, _DTYPE, align=64, offset_factor=columns, scope=_SHARED)
        F = T.match_buffer(fragment, shape, _DTYPE, align=64, offset_factor=columns, scope=FRAGMENT)
        with T.sblock("root"):
            T.reads(S[0:rows, 0:columns])
            T.writes(F[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.sblock("load"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    F[vi, vj] = S[vi, vj]

    @T.prim_func(s_tir=True)
    def code(shared: T.handle, fragment: T.handle) -> None:
        s1, s0 = T.int32(), T.int32()
        f1, f0 = T.int32(), T.int32()
        S = T.match_buffer(shared, shape, _DTYPE, align=64, offset_factor=columns, scope=_SHARED, strides=[s1, s0])
        F = T.match_buffer(fragment, shape, _DTYPE, align=64, offset_factor=columns, scope=FRAGMENT, strides=[f1, f0])
        with T.sblock("root"):
            T.reads(S[0:rows, 0:columns])
            T.writes(F[0:rows, 0:columns])
            T.evaluate(
                T.cuda.func_call(
                    name,
                    F.access_ptr("w", ptr_type=_DTYPE),
                    S.access_ptr("r", ptr_type=_DTYPE),
                    s1,
                    source_code=source,
                )
            )

    return description, code


def _multiply(shape: tuple[int, int], cuda: Any, *, in_columns: bool) -> tuple[PrimFunc, PrimFunc]:
    """Return the description and the code of adding a product; ``shape`` is that of the second factor."""
    rows, columns = shape
    name = f"{TF32_FUNCTIONS}multiply{'_trans' if in_columns else ''}"
    source = _MULTIPLY.format(
        name=name,
        first=_FRAGMENT_OF.format(which="a", layout=_LAYOUTS[False]),
        second=_FRAGMENT_OF.format(which="b", layout=_LAYOUTS[in_columns]),
    )
    index = cuda.get_wmma_fragment_index

    def place(k: Any, j: Any) -> tuple[Any, Any]:
        return (j, k) if in_columns else (k, j)

    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (_M, _K), _DTYPE, align=64, offset_factor=_K, scope=FRAGMENT)
        B = T.match_buffer(b, shape, _DTYPE, align=64, offset_factor=columns, scope=FRAGMENT)
        C = T.match_buffer(c, (_M, _N), _DTYPE, align=64, offset_factor=_N, scope=_SUMS)
        with T.sblock("root"):
            T.reads(C[0:_M, 0:_N], A[0:_M, 0:_K], B[0:rows, 0:columns])
            T.writes(C[0:_M, 0:_N])
            for i, j, k in T.grid(_M, _N, _K):
                with T.sblock(""):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    row, column = T.meta_var(place(vk, vj))
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[row, column]

    @T.prim_func(s_tir=True)
    def code(a: T.handle, b: T.handle, c: T.handle) -> None:
        a1, a0 = T.int32(), T.int32()
        b1, b0 = T.int32(), T.int32()
        c1, c0 = T.int32(), T.int32()
        A = T.match_buffer(a, (_M, _K), _DTYPE, align=64, offset_factor=_K, scope=FRAGMENT, strides=[a1, a0])
        B = T.match_buffer(b, shape, _DTYPE, align=64, offset_factor=columns, scope=FRAGMENT, strides=[b1, b0])
        C = T.match_buffer(c, (_M, _N), _DTYPE, align=64, offset_factor=_N, scope=_SUMS, strides=[c1, c0])
        with T.sblock("root"):
            T.reads(C[0:_M, 0:_N], A[0:_M, 0:_K], B[0:rows, 0:columns])
            T.writes(C[0:_M, 0:_N])
            T.evaluate(
                T.cuda.func_call(
                    name,
                    C.data,
                    index(C, c1, _M, _N),
                    A.access_ptr("r", ptr_type=_DTYPE),
                    B.access_ptr("r", ptr_type=_DTYPE),
                    source_code=source,
                )
            )

    return description, code
