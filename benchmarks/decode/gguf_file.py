"""The decoder as a file of llama.cpp: the same numbers and scales as Q8_0 or Q4_0.

PYTHON -m benchmarks.decode.gguf_file FOLDER PRECISION

It is a program of its own because the package ``gguf`` is in the rivals' environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy as np

from benchmarks.decode.weights import (
    BLOCK,
    EMBEDDING,
    EPSILON,
    GGUF,
    HEAD,
    NORM,
    THETA,
    Array,
    Matrix,
    Weights,
    layer,
    read,
)

_KINDS = {
    "float32": gguf.GGMLQuantizationType.F32,
    "int8": gguf.GGMLQuantizationType.Q8_0,
    "int4": gguf.GGMLQuantizationType.Q4_0,
}
_OF_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def main() -> None:
    folder = Path(sys.argv[1])
    write(read(folder, sys.argv[2]), folder / GGUF)


def write(weights: Weights, path: Path) -> None:
    shape, kind = weights.shape, _KINDS[weights.precision]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(shape.capacity)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.intermediate)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_heads)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_rope_freq_base(THETA)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("none")
    for name, ours in names(shape.layers).items():
        if ours in weights.arrays:
            writer.add_tensor(name, weights.arrays[ours])
            continue
        matrix = weights.matrices[ours]
        if ours.endswith(("q_proj.weight", "k_proj.weight")):
            heads = shape.heads if ours.endswith("q_proj.weight") else shape.key_heads
            matrix = Matrix(interleaved(matrix.numbers, heads), _of_heads(matrix.scales, heads))
        if matrix.scales is None:
            writer.add_tensor(name, matrix.numbers)
        else:
            writer.add_tensor(name, blocks(matrix, weights.precision), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def names(layers: int) -> dict[str, str]:
    """Return the names in transformers by those in the file."""
    found = {"token_embd.weight": EMBEDDING, "output.weight": HEAD, "output_norm.weight": NORM}
    for n in range(layers):
        found |= {f"blk.{n}.{theirs}.weight": f"{layer(n)}.{ours}.weight" for ours, theirs in _OF_LAYER.items()}
    return found


def interleaved(rows: Array, heads: int) -> Array:
    """Return the rows of a projection in the order in which llama.cpp rotates neighbours; transformers, halves."""
    return np.ascontiguousarray(
        rows.reshape(heads, 2, len(rows) // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)
    )


def _of_heads(scales: Array | None, heads: int) -> Array | None:
    return None if scales is None else interleaved(scales, heads)


def blocks(matrix: Matrix, precision: str) -> Array:
    """Return the bytes of Q8_0 or Q4_0: of each block a scale in float16, and its numbers.

    In Q4_0, the low halves of the bytes are the first half of the block.
    """
    assert matrix.scales is not None
    outputs, count = matrix.scales.shape
    numbers = matrix.numbers.reshape(outputs, count, BLOCK)
    if precision == "int4":
        unsigned = (numbers + 8).astype("uint8")
        stored = unsigned[..., : BLOCK // 2] | (unsigned[..., BLOCK // 2 :] << 4)
    else:
        stored = numbers.view("uint8")
    scales = matrix.scales.astype("<f2")[..., None].view("uint8")
    return np.concatenate([scales, stored], -1).reshape(outputs, -1)


if __name__ == "__main__":
    main()
