"""An exported program of PyTorch, called on copies of its example inputs."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from loopwright.frontends.reference import Call


@dataclass(frozen=True, slots=True)
class TorchReference:
    """See `loopwright.frontends.reference.Reference`."""

    program: Any
    name: str = "PyTorch"

    def call(self) -> Call | None:
        torch = importlib.import_module("torch")
        if self.program.example_inputs is None:
            return None
        args, kwargs = torch.utils._pytree.tree_map(_copy, self.program.example_inputs)
        # Before the call, which may change its inputs.
        inputs = [_copy(tensor) for tensor in _tensors((args, kwargs))]
        with torch.no_grad():
            outputs = _tensors(self.program.module(check_guards=False)(*args, **kwargs))
        tensors = (*self.program.state_dict.values(), *inputs, *outputs)
        return Call(inputs, outputs, frozenset(str(each.dtype).removeprefix("torch.") for each in tensors))


def _copy(leaf: Any) -> Any:
    torch = importlib.import_module("torch")
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _tensors(value: Any) -> list[Any]:
    torch = importlib.import_module("torch")
    leaves = torch.utils._pytree.tree_leaves(value)
    # Contiguous, and in memory of its own: a view may begin anywhere.
    return [
        leaf.detach().clone(memory_format=torch.contiguous_format) for leaf in leaves if isinstance(leaf, torch.Tensor)
    ]
