"""A model as tuning sees it: a module whose weights are parameters, and the weights, which stay on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from loopwright.extras import require_tvm
from loopwright.frontends.reference import Reference


@dataclass(frozen=True, slots=True)
class Program:
    """``weights`` are ``tvm.runtime.Tensor`` values by the name of the Relax function's parameter that takes them.

    ``reference`` is the model itself, where its own framework can run it here. ``bound`` are the names of symbolic
    extents that the front end has bound. ``buffers`` are the initial values of the model's state by name: ``main``
    takes the values as its last inputs, and returns the new ones as its last outputs.
    """

    module: Any
    weights: dict[str, Any] = field(default_factory=dict)
    reference: Reference | None = None
    bound: frozenset[str] = frozenset()
    buffers: dict[str, Any] = field(default_factory=dict)

    def bind(self, shape: Mapping[str, int]) -> Program:
        """Return the program with symbolic extents bound by name, but for those that its front end has bound.

        Raises:
            InvalidModule: as `loopwright.codegen.program.lowering.bind_shapes`.
        """
        from loopwright.codegen.program.lowering import bind_shapes

        extents = {name: extent for name, extent in shape.items() if name not in self.bound}
        return replace(self, module=bind_shapes(self.module, extents))


def detach(mod: Any, reference: Reference | None = None) -> Program:
    """Return a module as a program: its constant tensors become parameters
    (`loopwright.codegen.weights.parameters`)."""
    require_tvm()
    from loopwright.codegen.weights import parameters as weights

    return Program(*weights.detach(mod), reference)
