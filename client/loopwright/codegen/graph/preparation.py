"""The order of the rewritings that need no values."""

from __future__ import annotations

from functools import partial

import tvm
from tvm.relax import transform
from tvm.target import Target

from loopwright.codegen.graph.attention import fuse_attention
from loopwright.codegen.graph.channel_scales import scale_in_place
from loopwright.codegen.graph.constants import fold_constants
from loopwright.codegen.graph.dilated_kernel import spread_inputs
from loopwright.codegen.graph.identities import remove_identities
from loopwright.codegen.graph.inner_axes import flatten_inner_axes
from loopwright.codegen.graph.layout import take_in_transposes
from loopwright.codegen.graph.lookups import limit_lookups
from loopwright.codegen.graph.norms import fuse_rms_norm
from loopwright.codegen.graph.packed import decode_in_place
from loopwright.codegen.graph.padding import take_in_padding
from loopwright.codegen.graph.pooled_means import note_means
from loopwright.codegen.graph.products import flatten_batches, flatten_rows, read_transposed
from loopwright.codegen.graph.ranges import find_ranges
from loopwright.codegen.graph.scans import scan_in_vectors
from loopwright.codegen.graph.selection import select_few
from loopwright.codegen.graph.sinking import sink_movements, sink_permutations, sink_reshapes
from loopwright.codegen.graph.summed_norms import fuse_sums_with_norms
from loopwright.codegen.graph.transposed_convolution import split_phases
from loopwright.codegen.graph.windows import cut_windows

KEPT = ("relax.reshape",)
"""Operators that are not legalised: Relax's virtual machine makes a view of them, and no function fuses with them."""


def prepare(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return a Relax module whose operators, legalised and fused, are few and simple functions for a target."""
    # DLight's schedules for GPUs are for functions with one output.
    is_cpu = target.kind.name == "llvm"
    sums = (fuse_sums_with_norms,) if is_cpu else ()
    images = (scale_in_place, note_means) if is_cpu else ()
    rows = (partial(scan_in_vectors, target=target), partial(select_few, target=target)) if is_cpu else ()
    for apply in (
        transform.ConvertToDataflow(),  # TVM fuses in dataflow blocks only
        transform.CanonicalizeBindings(),
        limit_lookups,
        cut_windows,
        take_in_padding,
        *sums,
        fuse_rms_norm,
        sink_permutations,
        partial(fuse_attention, pads_rows=is_cpu),
        remove_identities,
        sink_movements,
        remove_identities,
        flatten_rows,
        partial(decode_in_place, apart=is_cpu),
        read_transposed,
        flatten_batches,
        transform.EliminateCommonSubexpr(),
        flatten_inner_axes,
        sink_reshapes,
        spread_inputs,
        split_phases,
        remove_identities,
        take_in_transposes,
        *images,
        *rows,
        find_ranges,
        fold_constants,  # last: masks that are computed as attention reads them stay as they are
    ):
        mod = apply(mod)
    return mod
