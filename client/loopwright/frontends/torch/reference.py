"""An exported program of PyTorch, called on copies of its example inputs."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

from loopwright.frontends.precision import QUANTISED
from loopwright.frontends.reference import INFINITIES, Call, with_specials

_ROUNDING = ("aten._int_mm", "quantized_decomposed.quantize_per")
"""Operators of models that round activations to integers."""


@dataclass(frozen=True, slots=True)
class TorchReference:
    """See `loopwright.frontends.reference.Reference`."""

    program: Any
    buffers: tuple[str, ...] = ()
    """Of the program, that are the last inputs and, as they are after the call, the last outputs."""
    name: str = "PyTorch"

    def call(self, *, special: bool = False) -> Call | None:
        torch = importlib.import_module("torch")
        if self.program.example_inputs is None:
            return None
        change = _with_specials if special else _copy
        args, kwargs = torch.utils._pytree.tree_map(change, self.program.example_inputs)
        # Before the call, which may change its inputs.
        module = self.program.module(check_guards=False)
        state = {name: _copy(module.get_buffer(name)) for name in self.buffers}
        inputs = _tensors((args, kwargs, list(state.values())))
        try:
            with torch.no_grad():
                returned = torch.func.functional_call(module, state, args, kwargs)
                outputs = _tensors((returned, list(state.values())))
        except Exception:
            if special:  # values that it checks, or uses as indices
                return None
            raise
        tensors = (*self.program.state_dict.values(), *inputs, *outputs)
        dtypes = {str(each.dtype).removeprefix("torch.") for each in tensors}
        names = (str(node.target) for node in self.program.graph.nodes)
        if any(name.startswith(_ROUNDING) for name in names):
            dtypes.add(QUANTISED)
        return Call(inputs, outputs, frozenset(dtypes))


def _copy(leaf: Any) -> Any:
    torch = importlib.import_module("torch")
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _with_specials(leaf: Any) -> Any:
    """Return a copy of a leaf, in which a few elements are special if it is a tensor of floating-point numbers."""
    torch = importlib.import_module("torch")
    copy = _copy(leaf)
    if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
        return copy
    wide = copy.double().numpy(force=True)
    return torch.from_numpy(with_specials(wide, (math.nan, *INFINITIES))).to(copy.dtype)


def _tensors(value: Any) -> list[Any]:
    torch = importlib.import_module("torch")
    leaves = torch.utils._pytree.tree_leaves(value)
    # Contiguous, and in memory of its own: a view may begin anywhere.
    return [
        leaf.detach().clone(memory_format=torch.contiguous_format) for leaf in leaves if isinstance(leaf, torch.Tensor)
    ]
