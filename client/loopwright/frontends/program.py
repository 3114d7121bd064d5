"""A model as tuning sees it: a module whose weights are parameters, and the weights, which stay on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loopwright.extras import require_tvm
from loopwright.frontends.reference import Reference


@dataclass(frozen=True, slots=True)
class Program:
    """``weights`` are ``tvm.runtime.Tensor`` values by the name of the Relax function's parameter that takes them.

    ``reference`` is the model itself, where its own framework can run it here.
    """

    module: Any
    weights: dict[str, Any] = field(default_factory=dict)
    reference: Reference | None = None


def detach(mod: Any, reference: Reference | None = None) -> Program:
    """Return a module as a program: its constant tensors become parameters
    (`loopwright.codegen.weights.parameters`)."""
    require_tvm()
    from loopwright.codegen.weights import parameters as weights

    return Program(*weights.detach(mod), reference)
