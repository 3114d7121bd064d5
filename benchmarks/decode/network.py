"""The decoder as a module of PyTorch: a Llama of transformers, whose layers decode their weights."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

from benchmarks.decode.weights import BLOCK, EPSILON, THETA, Matrix, Shape, Weights, nibbles


class Decoded(nn.Module):
    """A linear layer with a scale for each block of its depth, and weights of 8 bits, or of 4, two in a byte."""

    weight: torch.Tensor
    scales: torch.Tensor

    def __init__(self, matrix: Matrix, bits: int) -> None:
        super().__init__()
        assert matrix.scales is not None
        self.bits, self.extents = bits, matrix.numbers.shape
        stored = nibbles(matrix.numbers) if bits == 4 else matrix.numbers
        self.register_buffer("weight", torch.from_numpy(stored))
        self.register_buffer("scales", torch.from_numpy(matrix.scales).half())  # which represents them

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs, depth = self.extents
        if self.bits == 4:
            numbers = torch.stack([self.weight & 15, self.weight >> 4], -1).reshape(outputs, depth).to(x.dtype)
            numbers = numbers.reshape(outputs, depth // BLOCK, BLOCK) - 8
        else:
            numbers = self.weight.to(x.dtype).reshape(outputs, depth // BLOCK, BLOCK)
        scales = self.scales[..., None].to(x.dtype)
        return nn.functional.linear(x, (numbers * scales).reshape(outputs, depth))


def config(shape: Shape) -> Any:
    return transformers.LlamaConfig(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        vocab_size=shape.vocabulary,
        max_position_embeddings=shape.capacity,
        rms_norm_eps=EPSILON,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )


def in_float32(weights: Weights) -> Any:
    """Return the module with all weights in float32."""
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config(weights.shape))
    # Not meta: buffers that are computed.
    model.model.rotary_emb = type(model.model.rotary_emb)(config(weights.shape))
    values = {name: matrix.values() for name, matrix in weights.matrices.items()} | weights.arrays
    model.load_state_dict({name: torch.from_numpy(value) for name, value in values.items()}, assign=True)
    frozen: Any = model.requires_grad_(False)
    return frozen.eval()


def network(weights: Weights) -> Any:
    """Return the module with packed weights."""
    if weights.precision == "float32":
        return in_float32(weights)
    model = in_float32(weights)
    for name, matrix in weights.matrices.items():
        path = name.removesuffix(".weight")
        model.set_submodule(path, Decoded(matrix, {"int8": 8, "int4": 4}[weights.precision]))
    return model
