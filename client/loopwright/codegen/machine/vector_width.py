"""Measures whether code for a processor with AVX-512 should use vectors of 512 bits.

Some processors have half as many units for such vectors as for shorter ones, or run them at a lower frequency. LLVM
avoids them on most generations; code for them has half the instructions.
"""

from __future__ import annotations

import tvm
from tvm.target import Target, codegen

from loopwright.codegen.machine import kernels
from loopwright.codegen.program.build import compile_module

_FUNCTION = "main"
PREFERS_256_BIT = "prefer-256-bit"
"""LLVM's feature of processors for which it makes vectors of 256 bits."""

_AS_FAST = 0.85
"""Share of the speed with 256 bits from which 512 bits are used. With as many units the speed is twice as high, with
half as many the same: the threshold is far from both, so that the noise of a measurement decides nothing."""
_ROUNDS = 20_000
"""A tenth of a millisecond."""
_SAMPLES = 30


def attributes(mcpu: str, relative_speed: float) -> list[str]:
    """Return the attributes (``mattr``) that LLVM needs to make the faster vectors for a processor.

    ``relative_speed`` is the speed with vectors of 512 bits over that with 256.
    """
    is_wide = relative_speed >= _AS_FAST
    makes_wide = PREFERS_256_BIT not in map(str, codegen.llvm_get_cpu_features(Target({"kind": "llvm", "mcpu": mcpu})))
    if is_wide == makes_wide:
        return []
    return [f"{'-' if is_wide else '+'}{PREFERS_256_BIT}"]


def relative_speed(mcpu: str) -> float:
    """Return this machine's speed with vectors of 512 bits over that with 256."""
    return _speed(mcpu, 512) / _speed(mcpu, 256)


def _speed(mcpu: str, bits: int) -> float:
    """Return the multiplications and additions a second of one thread with vectors of so many bits, the best of many.

    The lock of the host is not asked for: it may be held for long, and the best of many short samples needs no rest.
    """
    width = bits // 32
    chains = kernels.cpu_chains(1, _ROUNDS, width).with_attr("global_symbol", _FUNCTION)
    target = Target({"kind": "llvm", "mcpu": mcpu, "mattr": [f"-{PREFERS_256_BIT}"], "num-cores": 1})
    module = compile_module(tvm.IRModule({_FUNCTION: chains}), target, argument_checks=False)
    arguments = [tvm.runtime.empty((1, kernels.CHAINS * width), "float32") for _ in range(2)]
    timer = module.time_evaluator(_FUNCTION, tvm.runtime.cpu(0), number=1, repeat=_SAMPLES)
    return 2.0 * kernels.CHAINS * width * _ROUNDS / float(min(timer(*arguments).results))
