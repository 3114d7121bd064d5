"""The order of the rewritings that need the values of weights."""

from __future__ import annotations

import tvm
from tvm.relax import transform

from loopwright.codegen.graph.constants import fold_constants
from loopwright.codegen.graph.folding import fold_normalisation
from loopwright.codegen.graph.identities import remove_identities
from loopwright.codegen.graph.layout import choose_layouts
from loopwright.codegen.graph.lookups import limit_lookups
from loopwright.codegen.graph.parallel import combine_projections
from loopwright.codegen.graph.sinking import sink_permutations
from loopwright.codegen.graph.transposed_convolution import split_constant_phases
from loopwright.codegen.graph.winograd import use_winograd


def prepare_weights(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a module with constants whose weights are as its products and convolutions want them.

    What follows from constants alone is computed: transposed and concatenated weights, and normalisations of inference,
    which are folded into the convolutions before them.
    """
    for apply in (
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        limit_lookups,
        remove_identities,
        fold_constants,
        fold_normalisation,
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
    return mod
