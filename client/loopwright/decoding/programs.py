"""The programs of a decoder: a causal language model on one token, and on prompts of some lengths. Needs PyTorch."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any

import torch

from loopwright.codegen.math_mode import FP32, MathMode
from loopwright.decoding.cache import ATTENTION, cache_of
from loopwright.errors import UnsupportedModel
from loopwright.frontends.torch.state import isolated
from loopwright.model import Model

PROMPT_LENGTH = 64
"""Not tuned."""


class CallOnTokens(torch.nn.Module):
    """A causal language model on a number of tokens behind those in the cache, as a function of the cache.

    ``call(ids, position, last, keys, values)`` returns the logits of one token, ``[1, 1, vocabulary]``, and the new
    keys and values. ``ids`` are ``[1, tokens]``, ``position`` is the number of tokens before, and ``last`` the index of
    the token, ``[1]``; both are int64. ``call(ids, position, keys, values)`` is for one token.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._cache = _cache_name(model)
        self.model = isolated(model)
        self.model.set_attn_implementation(ATTENTION)

    def forward(self, ids: Any, position: Any, *others: Any) -> Any:
        *last, keys, values = others
        cache: Any = cache_of(keys, values, position)
        positions = (torch.arange(ids.shape[1]) + position)[None]
        options = {self._cache: cache, "logits_to_keep": last[0] if last else 1}
        logits = self.model(input_ids=ids, position_ids=positions, use_cache=True, **options).logits
        return logits, tuple(each.keys for each in cache.layers), tuple(each.values for each in cache.layers)


def decoder_programs(
    model: Any,
    *,
    max_length: int,
    prompt_lengths: Sequence[int] | None = None,
    exact_math: bool = False,
    math: MathMode = FP32,
    int8_activations: bool = False,
) -> dict[int, Model]:
    """Return the programs of a decoder by the number of tokens in a call: one, and each of the lengths of prompts.

    Submit them to tune them: ``for program in decoder_programs(...).values(): client.submit(program)``.

    Args:
        model: a causal language model of ``transformers`` in evaluation mode, such as ``LlamaForCausalLM``.
        max_length: the number of tokens that the cache has room for, prompt and result together.
        prompt_lengths: prompts are padded to the next of these lengths, or cut into parts; by default one length, 64
            or what there is room for.
        exact_math: as for `Model`.
        math: as for `Model`.
        int8_activations: as for `Model`.

    Raises:
        UnsupportedModel: the model is no causal language model, or in training mode.
        ValueError: a length is not from 1 to ``max_length``.
    """
    lengths = sorted({1, *((min(PROMPT_LENGTH, max_length),) if prompt_lengths is None else prompt_lengths)})
    if wrong := [length for length in (max_length, *lengths) if not 1 <= length <= max_length]:
        raise ValueError(f"lengths should be from 1 to max_length={max_length}, and one is {wrong[0]}")
    if getattr(model, "training", False):
        raise UnsupportedModel(f"{type(model).__name__} is in training mode; call .eval() on it first")
    call = CallOnTokens(model).eval()
    cache = _example_cache(model, max_length)
    return {
        length: Model(
            call,
            example_inputs=(*_example(model, length, max_length), *cache),
            exact_math=exact_math,
            math=math,
            shares_weights=True,
            int8_activations=int8_activations,
        )
        for length in lengths
    }


def _example(model: Any, length: int, max_length: int) -> tuple[Any, ...]:
    """Return tokens behind half of a cache, or as many as there is room for."""
    ids = torch.arange(length)[None] % model.config.get_text_config().vocab_size
    position = torch.tensor(min(max_length // 2, max_length - length))
    return (ids, position) if length == 1 else (ids, position, torch.tensor([length - 1]))


def _example_cache(model: Any, capacity: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return random keys and values of each layer, ``[1, heads, capacity, head size]``.

    Raises:
        UnsupportedModel: the model has layers that do not keep keys and values.
    """
    cache = importlib.import_module("transformers").DynamicCache()
    with torch.no_grad():
        isolated(model)(input_ids=torch.zeros(1, 1, dtype=torch.int64), use_cache=True, **{_cache_name(model): cache})
    rows = [(layer.keys, layer.values) for layer in cache.layers if getattr(layer, "keys", None) is not None]
    if not rows or len(rows) != len(cache.layers):
        raise UnsupportedModel(
            f"{type(model).__name__} has layers without keys and values, and cannot be decoded with a cache of them"
        )
    generator = torch.Generator().manual_seed(0)

    def drawn(tensor: Any) -> Any:
        shape = (1, tensor.shape[1], capacity, tensor.shape[3])
        return torch.randn(shape, generator=generator).to(tensor.dtype)

    keys, values = (tuple(map(drawn, tensors)) for tensors in zip(*rows, strict=True))
    return keys, values


def _cache_name(model: Any) -> str:
    """Return the name of the argument that takes the cache, which changed in ``transformers`` 5.

    Raises:
        UnsupportedModel: the model takes none, or cannot return the logits of one token alone.
    """
    names = inspect.signature(model.forward).parameters
    found = next((name for name in ("cache", "past_key_values") if name in names), None)
    if found is None or "logits_to_keep" not in names:
        raise UnsupportedModel(
            f"{type(model).__name__} is no causal language model of transformers: its forward takes no "
            f"{'cache' if found is None else 'logits_to_keep'}; give a model such as LlamaForCausalLM"
        )
    return found
