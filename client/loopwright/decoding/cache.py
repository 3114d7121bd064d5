"""The cache and the attention with which a causal language model becomes one program for all lengths.

Needs PyTorch and ``transformers``.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, StaticLayer
from transformers.masking_utils import sdpa_mask

from loopwright.errors import UnsupportedModel

ATTENTION = "loopwright"
"""Name of the attention among the implementations that ``transformers`` knows."""


@torch.library.custom_op("loopwright::write_rows", mutates_args=())
def write_rows(rows: torch.Tensor, new: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """Return rows of a cache, ``[1, heads, capacity, head size]``, with new ones at the position and behind it.

    In a program, the new rows are written into the cache in place (`loopwright.frontends.torch.scattering`).
    """
    result = rows.clone()
    result[:, :, int(position) : int(position) + new.shape[2]] = new
    return result


@write_rows.register_fake
def _(rows: torch.Tensor, new: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(rows)


class _Layer(StaticLayer):  # type: ignore[no-untyped-call]
    """The keys and values of a layer, ``[1, heads, capacity, head size]``, of which the first ``position`` are valid.

    An update makes new tensors, and keeps those that were given.
    """

    def __init__(self, keys: Any, values: Any, position: Any) -> None:
        super().__init__(max_cache_len=keys.shape[2])
        self.keys, self.values, self.cumulative_length = keys, values, position
        self.device, self.is_initialized = keys.device, True

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        self.keys = write_rows(self.keys, key_states, self.cumulative_length)
        self.values = write_rows(self.values, value_states, self.cumulative_length)
        return self.keys, self.values


def cache_of(keys: tuple[Any, ...], values: tuple[Any, ...], position: Any) -> Cache:
    """Return a cache for a call of a model on tokens from a position on.

    Args:
        keys: of each layer, ``[1, heads, capacity, head size]``.
        values: as the keys.
        position: the number of tokens before the call, an int64 tensor without axes.
    """
    return Cache(layers=[_Layer(*each, position) for each in zip(keys, values, strict=True)])


def _attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    **other: Any,
) -> tuple[Any, None]:
    """Compute attention with the keys and values as the cache has them: a group's heads are rows of one query.

    Returns:
        The result, ``[1, tokens, heads, head size]``, and no weights.
    """
    if refused := sorted(name for name in ("s_aux", "position_bias") if other.get(name) is not None):
        raise UnsupportedModel(
            f"the attention of {type(module).__name__} takes {', '.join(refused)}, and decoders with it are not "
            "supported; compile one call of the model with Client.compile"
        )
    batch, heads, tokens, size = query.shape
    shared = key.shape[1]
    rows = query.reshape(batch, shared, heads // shared * tokens, size)
    mask = attention_mask.repeat(1, 1, heads // shared, 1) if heads > shared and tokens > 1 else attention_mask
    if (cap := other.get("softcap")) is None:
        result = torch.nn.functional.scaled_dot_product_attention(rows, key, value, attn_mask=mask, scale=scaling)
    else:
        scores = torch.tanh(rows @ key.transpose(2, 3) * (size**-0.5 if scaling is None else scaling) / cap) * cap
        result = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1) @ value
    return result.reshape(batch, heads, tokens, value.shape[-1]).transpose(1, 2).contiguous(), None


def _mask(*arguments: Any, **named: Any) -> Any:
    """Return the mask of the keys that each query sees, which depends on the position, and is never left out."""
    return sdpa_mask(*arguments, **{**named, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})


AttentionInterface.register(ATTENTION, _attention)
AttentionMaskInterface.register(ATTENTION, _mask)
