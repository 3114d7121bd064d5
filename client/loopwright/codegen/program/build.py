"""Building scheduled modules: the one set of compile options for candidates, certificates and the user's programs."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import relax
from tvm.relax.pipeline import finalize_passes
from tvm.s_tir import SBlock
from tvm.target import Target
from tvm.tirx import AssertStmt

from loopwright.codegen.functions import has_relax, prim_funcs, relax_funcs
from loopwright.codegen.gpu.async_copy import copies_asynchronously
from loopwright.codegen.gpu.compiler_errors import refusals_in_words
from loopwright.codegen.gpu.shared_memory import shared_memory_limit
from loopwright.codegen.gpu.vector_access import with_short_gathers
from loopwright.codegen.host import huge_pages
from loopwright.codegen.program.executable import Library, executable
from loopwright.codegen.program.lowered_bounds import proving
from loopwright.codegen.program.partial_tiles import KeptHints


def compile_module(
    mod: tvm.IRModule, target: Target, *, argument_checks: bool = True, libraries: Sequence[Library] = ()
) -> tvm.runtime.Module | relax.VMExecutable:
    """Generate code for a module whose functions are scheduled, and whose Relax functions are lowered.

    Args:
        argument_checks: whether a call checks the shapes, dtypes and devices of its arguments, which is the only option
            in which builds differ. The checks take 20 ns of a call and a tenth of a build. A user's program keeps them;
            the workers, whose arguments are always right, build candidates without. Assertions that a program makes
            itself are kept in either case.
        libraries: have external functions that the Relax functions call; for a CPU.

    Returns:
        A ``tvm.runtime.Module``, or a ``relax.VMExecutable`` for a module with Relax functions. Options are TVM's
        defaults, or those of the ``PassContext`` around the call, and what the module itself needs.

    Raises:
        CodeRefused: CUDA's compiler refuses the code; the message has its errors.
        ValueError: a scheduled function may leave its buffers, or a kernel needs more shared memory than the target's
            GPUs have.
    """
    if target.kind.name == "cuda":
        mod = with_short_gathers(mod)
    # TVM hands a GPU's architecture to the CUDA compiler through the scope of the target, not through the module.
    with target, _options(mod, target, argument_checks), proving(), refusals_in_words():
        if not has_relax(mod):
            return tvm.compile(mod, target=target).mod
        passes = tvm.transform.Sequential(executable_passes(target))
        if target.kind.name != "llvm":
            return relax.build(mod, target, relax_pipeline=passes)
        context = tvm.transform.PassContext.current()

        def compiled(part: tvm.IRModule) -> tvm.runtime.Module:
            with target, context:  # each thread has its own
                return tvm.tirx.build(part, target=target)

        built = executable(passes(mod), target, compiled, libraries)
        huge_pages.move(_weights(mod))  # which the executable has as they are
        return built


def executable_passes(target: Target) -> list[tvm.transform.Pass]:
    """Return the passes from scheduled PrimFuncs to what Relax's virtual machine runs.

    They neither legalise nor fuse, which is done before: doing it again could fuse a scheduled function into another.
    """
    return [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        *finalize_passes(target),
    ]


def _options(mod: tvm.IRModule, target: Target, argument_checks: bool) -> tvm.transform.PassContext:
    """Return the ``PassContext`` around the call with what this module needs beside, and with what all need."""
    config = {}
    if not argument_checks and not _asserts(mod):
        config["tirx.disable_assert"] = True
    if target.kind.name == "cuda" and _shares_unlike_elements(mod):
        # Otherwise StorageRewrite lets the sums of a tensor core lie where their factors lay, under the factors' type,
        # and LowerAccessPtr refuses them. With it MergeSharedMemoryAllocations alone decides what lies where.
        config["tirx.merge_static_smem"] = True
    if target.kind.name == "cuda" and copies_asynchronously(mod):
        # Otherwise TVM makes ordinary copies.
        config["tirx.use_async_copy"] = True
    checks = [shared_memory_limit(target)] if target.kind.name == "cuda" else []
    around = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=around.opt_level,
        required_pass=around.required_pass,
        disabled_pass=around.disabled_pass,
        instruments=[*(around.instruments or ()), *checks, KeptHints()],
        config={**around.config, **config},
    )


def _shares_unlike_elements(mod: tvm.IRModule) -> bool:
    """Return whether a function keeps elements of more than one type in memory shared by a block of threads."""
    return any(len(_shared_elements(func)) > 1 for _, func in prim_funcs(mod))


def _shared_elements(func: tvm.tirx.PrimFunc) -> set[str]:
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(func.body, (SBlock, blocks.append), order="pre")
    return {str(buffer.dtype) for block in blocks for buffer in block.alloc_buffers if buffer.scope() == "shared.dyn"}


def _weights(mod: tvm.IRModule) -> list[tvm.runtime.Tensor]:
    """Return the constants in a module's Relax functions."""
    found: list[tvm.runtime.Tensor] = []

    def visit(node: object) -> None:
        if isinstance(node, tvm.ir.GenericConst) and isinstance(node.value, tvm.runtime.Tensor):
            found.append(node.value)

    for _, func in relax_funcs(mod):
        relax.analysis.post_order_visit(func, visit)
    return found


def _asserts(mod: tvm.IRModule) -> bool:
    """Return whether a function of the module asserts something itself, which is a part of what it does."""
    assertions: list[AssertStmt] = []
    for _, func in prim_funcs(mod):
        tvm_ffi.structural_walk(func.body, (AssertStmt, assertions.append), order="pre")
    return bool(assertions)
