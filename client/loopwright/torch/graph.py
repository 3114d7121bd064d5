"""A graph of Dynamo: one program for each shape of its inputs, made again when its weights change."""

from __future__ import annotations

from typing import Any

import torch

from loopwright.torch.saying import say_once
from loopwright.torch.variant import GraphVariant, Outcome, Tuning

_STATIC = "_dynamo_static_input_type"
"""Dynamo marks so the tensors that a module holds: parameters and buffers."""


class Graph:
    """Callable as the graph is."""

    def __init__(self, module: torch.fx.GraphModule, tuning: Tuning) -> None:
        self._module, self._tuning = module, tuning
        places = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._weights = [n for n, node in enumerate(places) if _STATIC in (node.meta.get("tensor_dict") or {})]
        self._inputs = [n for n in range(len(places)) if n not in set(self._weights)]
        self._variants: dict[Any, tuple[Any, GraphVariant]] = {}

    @torch.compiler.disable
    def __call__(self, *args: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
            say_once(
                "it runs where gradients are recorded, and Loopwright is for inference; call it in torch.no_grad()"
            )
            return self._module(*args)
        shapes = tuple(_shape(args[n]) for n in self._inputs)
        weights = [args[n] for n in self._weights]
        stamps = tuple(map(_stamp, weights))
        known = self._variants.get(shapes)
        if known is None or known[0] != stamps:
            variant = GraphVariant(self._module, self._weights, list(args), self._tuning)
            self._variants[shapes] = (stamps, variant)
            return variant.first()
        return known[1](args)

    def uses(self, weights: set[int]) -> bool:
        """Return whether it holds one of some weights, given by ``id``."""
        return any(variant.uses(weights) for _, variant in self._variants.values())

    def refresh(self) -> int:
        return sum(variant.renew() for _, variant in self._variants.values())

    def outcomes(self) -> list[Outcome]:
        return [variant.outcome for _, variant in self._variants.values()]


def _shape(arg: Any) -> Any:
    if isinstance(arg, torch.Tensor):
        return tuple(arg.shape), arg.dtype, arg.device.type
    return arg


def _stamp(weight: torch.Tensor) -> tuple[int, int]:
    """Return what changes when another tensor takes the place of a weight, or its values are overwritten."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version
