"""A graph of Dynamo: a program for each shape of its inputs, made again when its weights change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from loopwright.torch.saying import say_once
from loopwright.torch.variant import GraphVariant, Outcome, Tuning

_STATIC = "_dynamo_static_input_type"
"""Dynamo marks so the tensors that a module holds, parameters and buffers, and those of a static cache."""
_MOST_VARIANTS = 4
"""Programs of a graph. A cache that grows has other extents in each call. Not tuned."""


class Graph:
    """Callable as the graph is."""

    def __init__(self, module: torch.fx.GraphModule, tuning: Tuning) -> None:
        self._module, self._tuning = module, tuning
        places = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._count = len(places)
        self._weights = [n for n, node in enumerate(places) if _STATIC in (node.meta.get("tensor_dict") or {})]
        self._variants: dict[Any, tuple[Any, GraphVariant]] = {}

    @torch.compiler.disable
    def __call__(self, *args: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
            say_once(
                "it runs where gradients are recorded, and Loopwright is for inference; call it in torch.no_grad()"
            )
            return self._module(*args)
        shapes, stamps = self._key(args)
        known = self._variants.get(shapes)
        if known is not None and known[0] == stamps:
            return known[1](args)
        if known is None and len(self._variants) >= _MOST_VARIANTS:
            say_once(
                f"its inputs have other shapes again and again, and it has programs for {_MOST_VARIANTS} of them; of a "
                'language model, set generation_config.cache_implementation to "static"'
            )
            return self._module(*args)
        variant = GraphVariant(self._module, self._weights, list(args), self._tuning)
        outputs = variant.first()
        self._weights = [n for n in self._weights if n not in variant.changed]
        shapes, stamps = self._key(args)
        self._variants[shapes] = (stamps, variant)
        return outputs

    def _key(self, args: Sequence[Any]) -> tuple[Any, Any]:
        """Return the shapes of the inputs, and what changes when a weight does."""
        weights = set(self._weights)
        return (
            tuple(_shape(args[n]) for n in range(self._count) if n not in weights),
            tuple(_stamp(args[n]) for n in self._weights),
        )

    def uses(self, weights: set[int]) -> bool:
        """Return whether it holds one of some weights, given by ``id``."""
        return any(variant.uses(weights) for _, variant in self._variants.values())

    def refresh(self) -> int:
        return sum(variant.renew() for _, variant in self._variants.values())

    def programs(self) -> list[Any]:
        """Return what PyTorch exported of it, for each shape of its inputs that can be compiled."""
        exported = [variant.exported for _, variant in self._variants.values()]
        return [each for each in exported if each is not None]

    def outcomes(self) -> list[Outcome]:
        return [variant.outcome for _, variant in self._variants.values()]


def _shape(arg: Any) -> Any:
    if isinstance(arg, torch.Tensor):
        return tuple(arg.shape), arg.dtype, arg.device.type
    return arg


def _stamp(weight: torch.Tensor) -> tuple[int, int]:
    """Return what changes when another tensor takes the place of a weight, or its values are overwritten."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version
