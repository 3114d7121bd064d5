"""The order of the rewritings that need the values of weights."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax
from tvm.relax import transform
from tvm.runtime import Tensor

from loopwright.codegen.functions import relax_funcs
from loopwright.codegen.graph.constants import fold_constants, fold_vectors
from loopwright.codegen.graph.folding import fold_normalisation
from loopwright.codegen.graph.identities import remove_identities
from loopwright.codegen.graph.integers import multiply_integers
from loopwright.codegen.graph.layout import choose_layouts
from loopwright.codegen.graph.lookups import limit_lookups
from loopwright.codegen.graph.masks import leave_out_zeros
from loopwright.codegen.graph.packed import PANEL, packed_weights
from loopwright.codegen.graph.padding import take_in_padding
from loopwright.codegen.graph.parallel import combine_projections
from loopwright.codegen.graph.requantising import divide_scales
from loopwright.codegen.graph.rewriting import replace_constants
from loopwright.codegen.graph.sinking import sink_permutations
from loopwright.codegen.graph.transposed_convolution import split_constant_phases
from loopwright.codegen.graph.whole_vectors import fill_vectors
from loopwright.codegen.graph.winograd import use_winograd


def prepare_weights(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a module with constants whose weights are as its products and convolutions want them.

    What follows from constants alone is computed: transposed and concatenated weights, and normalisations of inference,
    which are folded into the convolutions before them. Weights that are decoded where they are read
    (`loopwright.codegen.graph.packed`) stay as they are, but for columns that fill vectors, and for their scales: those
    of `PANEL` columns are neighbours.
    """
    for apply in (
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        limit_lookups,
        remove_identities,
        take_in_padding,
        fold_vectors,
        multiply_integers,
        fill_vectors,
    ):
        mod = apply(mod)
    mod, packed = _without_packed(mod)
    for apply in (
        fold_constants,
        leave_out_zeros,
        fold_normalisation,
        divide_scales,
        transform.EliminateCommonSubexpr(),
        remove_identities,
        combine_projections,
        choose_layouts,
        split_constant_phases,
        remove_identities,
        fold_constants,
        use_winograd,
        sink_permutations,
        transform.FoldConstant(),
        transform.DeadCodeElimination(),
    ):
        mod = apply(mod)
    for name, weights in packed.items():
        mod = transform.BindParams(name, weights)(mod)
    return mod


def _without_packed(mod: tvm.IRModule) -> tuple[tvm.IRModule, dict[str, dict[str, Tensor]]]:
    """Return the module with parameters in place of packed weights, and their values by function and name."""
    values: dict[str, dict[str, Tensor]] = {}
    hidden = mod.clone()
    for var, func in relax_funcs(mod):
        constants, scales = packed_weights(func)
        if not constants:
            continue
        arrays: dict[str, Tensor] = {}
        params: list[relax.Var] = []
        replacements: list[tuple[relax.Expr, tvm.ir.GenericConst]] = []
        for place, constant in enumerate(constants):
            name, array = f"packed_{place}", constant.value.numpy()
            is_scale = any(constant.same_as(each) for each in scales)
            width = PANEL if len(array) % PANEL == 0 else len(array)
            if is_scale:  # [columns, blocks] becomes [columns / width, blocks, width]
                array = np.ascontiguousarray(array.reshape(-1, width, array.shape[1]).swapaxes(1, 2))
            arrays[name] = tvm.runtime.tensor(array) if is_scale else constant.value
            param = relax.Var(name, relax.TensorType(array.shape, constant.value.dtype))
            params.append(param)
            panels = relax.op.permute_dims(param, [0, 2, 1])
            replacements.append((relax.op.reshape(panels, constant.value.shape) if is_scale else param, constant))
        replaced = replace_constants(mod, func, replacements)
        params = [*func.params, *params]
        hidden.update_func(var, relax.Function(params, replaced.body, replaced.ret_ty, func.is_pure, func.attrs))
        values[str(var.name_hint)] = arrays
    return hidden, values
