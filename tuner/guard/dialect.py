"""The words of TVMScript (TVM 0.27) that submitted text may use, and the old dialect's words with what replaced them.

TVM's parser looks `T.name` up on a Python package and evaluates what it finds, so what is not listed must not get
through. Left out on purpose: whatever calls out of the program (`call_extern`, `call_packed`, kernels in CUDA or
assembly), runs Python (`macro`, `inline`, `pyfunc`, `emit_te`), takes Python functions (`comm_reducer`,
`index_map`), and the tile language of hand-written kernels.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LANES = ("", "x2", "x4", "x8", "x16", "x32", "x64")
_SCALARS = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
)
_TYPES = frozenset(scalar + lanes for scalar in _SCALARS for lanes in _LANES) | _words(
    "bfloat16 bool boolean void handle Buffer Ptr let Tuple Range"
)
_STRUCTURE = _words("""
    func_attr target meta_var match_buffer decl_buffer alloc_buffer sblock_alloc_buffer BufferLoad
    sblock sblock_attr reads writes where init iter_var
    grid serial parallel vectorized unroll thread_binding env_thread launch_thread
    attr evaluate bind assume likely
    """)
_EXPRESSIONS = _words("""
    Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or Not
    BitwiseAnd BitwiseOr BitwiseXor BitwiseNot LShift RShift
    Cast cast Select if_then_else IntImm FloatImm Broadcast broadcast Ramp ramp Shuffle reinterpret
    min max min_value max_value infinity undef
    floordiv floormod truncdiv truncmod ceildiv
    bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right
    """)
_MATH = _words("""
    abs fabs acos acosh asin asinh atan atan2 atanh ceil clz copysign cos cosh erf exp exp10 exp2 floor fma fmod
    hypot isfinite isinf isnan ldexp log log10 log1p log2 nearbyint nextafter popcount pow round rsqrt sigmoid sin
    sinh sqrt tan tanh trunc q_multiply_shift q_multiply_shift_per_axis dp4a vectorlow vectorhigh vectorcombine vscale
    call_llvm_intrin call_llvm_pure_intrin llvm_lookup_intrinsic_id
    """)
_AXIS = _words("spatial reduce scan opaque remap S R")

_RELAX_STRUCTURE = _words("""
    func_attr dataflow output match_cast call_tir call_tir_inplace call_dps_packed call_pure_packed
    Tensor Tuple Shape Prim Object Any Callable
    const prim_value shape str dtype tuple null_value shape_of tensor_to_shape shape_to_tensor size
    to_vdevice hint_on_device device print assert_op
    """)
_RELAX_OPS = _words("""
    add atan2 bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal left_shift
    less less_equal log_add_exp logical_and logical_or logical_xor maximum minimum mod multiply not_equal power
    right_shift subtract
    arange eye eye_like full full_like hamming_window ones ones_like tril triu zeros zeros_like astype wrap_param
    dynamic_strided_slice strided_slice take einsum linear matmul outer
    broadcast_to collapse_sum_like collapse_sum_to concat expand_dims flatten flip gather_elements gather_nd index_put
    index_tensor meshgrid one_hot permute_dims repeat reshape reverse_sequence scatter_elements scatter_nd
    slice_scatter split squeeze stack tile dequantize quantize multinomial_from_uniform
    argmax argmin bucketize where nonzero unique argsort sort topk
    cumprod cumsum max mean median min prod std sum variance ewise_fma
    abs acos acosh asin asinh atan atanh bitwise_not ceil clip cos cosh erf exp floor isfinite isinf isnan log
    logical_not negative round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc
    """)
_RELAX_NN = _words("""
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d attention attention_bias attention_var_len avg_pool1d
    avg_pool2d avg_pool3d batch_flatten batch_norm conv1d conv1d_transpose conv2d conv2d_transpose conv3d
    conv3d_transpose cross_entropy_with_logits dropout gelu gelu_tanh group_norm instance_norm layer_norm leakyrelu
    log_softmax max_pool1d max_pool2d max_pool3d nll_loss pad pixel_shuffle prelu relu relu6 rms_norm selu silu
    softmax softplus
    """)
_RELAX_IMAGE = _words("affine_grid grid_sample resize2d resize3d")
_RELAX_VISION = _words("""
    all_class_non_max_suppression get_valid_counts multibox_transform_loc non_max_suppression roi_align roi_pool
    """)

NAMESPACES: dict[str, frozenset[str]] = {
    "T": _TYPES | _STRUCTURE | _EXPRESSIONS | _MATH,
    "T.axis": _AXIS,
    "R": _RELAX_STRUCTURE | _RELAX_OPS,
    "R.nn": _RELAX_NN,
    "R.image": _RELAX_IMAGE,
    "R.vision": _RELAX_VISION,
    "I": _words("module_attrs module_global_infos vdevice dummy_global_info meta_var Range"),
}
"""Namespace, as written -> the names that may follow it."""

ATTRIBUTES = _words("data dtype shape strides elem_offset access_ptr vload vstore offset_of scope astype")
"""What may follow the dot after a buffer or an expression."""

CALLING_OUT = _words("""
    call_extern call_pure_extern call_packed call_packed_lowered call_cpacked call_cpacked_lowered call_kernel
    call_ffi_kernel call_intrin tvm_call_packed tvm_call_packed_lowered tvm_call_cpacked tvm_call_cpacked_lowered
    call_inplace_packed call_builtin_with_ctx call_py_func ExternFunc
    """)
"""Names that are known and refused because they leave the program; for the error message only."""

DECORATORS: dict[str, frozenset[str]] = {
    "I.ir_module": frozenset({"check_well_formed", "s_tir"}),
    "tvm.script.ir_module": frozenset({"check_well_formed", "s_tir"}),
    "T.prim_func": frozenset({"private", "check_well_formed", "s_tir", "persistent"}),
    "R.function": frozenset({"pure", "private", "check_well_formed"}),
}
"""Decorator -> its options, each True or False."""

DATA_CALLS = _words(
    "T.func_attr T.sblock_attr T.attr T.target R.func_attr R.print R.assert_op I.module_attrs I.vdevice"
)
"""Calls that only store their literals: the strings in them are never read back by the parser."""

IMPORTS: dict[str, frozenset[str]] = {
    "__future__": frozenset({"annotations"}),
    "typing": frozenset({"TypeVar"}),
    "tvm.script": frozenset({"ir as I", "tirx as T", "relax as R"}),
    "tvm.script.parser": frozenset({"ir as I", "tirx as T", "relax as R"}),
    "tvm.tirx.layout": frozenset({"Axis"}),
}
"""Module -> what may be imported from it. Import lines are removed: the parser knows T, R and I."""

OLD_WORDS: dict[str, str] = {
    "T.block": "T.sblock",
    "T.block_attr": "T.sblock_attr",
    "T.buffer_decl": "T.Buffer",
    "T.preflattened_buffer": "T.match_buffer",
    "T.noalias": "T.func_attr({'tirx.noalias': True})",
    "tir.noalias": "tirx.noalias",
    "out_sinfo": "out_ty",
    "sinfo_args": "ty_args",
}
"""Word of TVMScript before TVM 0.24 -> the word that replaced it."""
