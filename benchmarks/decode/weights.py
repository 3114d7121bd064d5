"""The weights of the decoder: random numbers, quantised once, so that all engines multiply the same ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
"""Of NumPy."""
BLOCK = 32
"""Weights that have a scale, along the depth: as in llama.cpp's Q8_0 and Q4_0, and in MatMulNBits."""
BITS = {"float32": 32, "int8": 8, "int4": 4}
"""Of the weights of a precision. Embeddings and norms are float32 in all of them."""
EMBEDDING, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"
LEVELS = {"": 1, "int8 rows": 4}
"""``accuracy_level`` of MatMulNBits, by variant: 1 multiplies float32, and 4 rounds the rows to int8 first."""
GGUF = "model.gguf"
"""The file of llama.cpp."""
EPSILON, THETA = 1e-6, 10_000.0
"""Of the norms, and the base of the rotary embedding."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Extents of a Llama.

    Attributes:
        key_heads: Heads of keys and values, which the heads of queries share.
        capacity: Tokens that a cache has room for.
    """

    hidden: int = 1024
    intermediate: int = 2816
    layers: int = 12
    heads: int = 16
    key_heads: int = 4
    vocabulary: int = 16_000
    capacity: int = 512

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    def matrices(self) -> dict[str, tuple[int, int]]:
        """Return the extents ``(outputs, depth)`` of the matrices that are quantised, by name in transformers."""
        keys = self.key_heads * self.head_size
        of_layer = {
            "self_attn.q_proj": (self.hidden, self.hidden),
            "self_attn.k_proj": (keys, self.hidden),
            "self_attn.v_proj": (keys, self.hidden),
            "self_attn.o_proj": (self.hidden, self.hidden),
            "mlp.gate_proj": (self.intermediate, self.hidden),
            "mlp.up_proj": (self.intermediate, self.hidden),
            "mlp.down_proj": (self.hidden, self.intermediate),
        }
        names = {f"{layer(n)}.{name}.weight": each for n in range(self.layers) for name, each in of_layer.items()}
        return names | {HEAD: (self.vocabulary, self.hidden)}

    def norms(self) -> Iterator[str]:
        for n in range(self.layers):
            yield f"{layer(n)}.input_layernorm.weight"
            yield f"{layer(n)}.post_attention_layernorm.weight"
        yield NORM


SMOKE = Shape(hidden=256, intermediate=512, layers=2, heads=4, key_heads=2, vocabulary=1000, capacity=128)


def layer(n: int) -> str:
    return f"model.layers.{n}"


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix ``[outputs, depth]``: ``numbers``, int8 and with a scale for each block of the depth, or float32."""

    numbers: Array
    scales: Array | None = None

    def values(self) -> Array:
        """Return the matrix in float32."""
        if self.scales is None:
            return self.numbers
        blocks = self.numbers.reshape(*self.scales.shape, BLOCK).astype("float32")
        return (blocks * self.scales[..., None]).reshape(self.numbers.shape)


@dataclass(frozen=True)
class Weights:
    """All weights of a decoder in a precision.

    Attributes:
        arrays: The embedding and the norms, float32.
    """

    shape: Shape
    precision: str
    matrices: dict[str, Matrix]
    arrays: dict[str, Array]

    @property
    def bytes(self) -> int:
        """The size of the weights: numbers of as many bits as the precision has, and scales of float32."""
        numbers = sum(each.numbers.size for each in self.matrices.values()) * BITS[self.precision] // 8
        scales = sum(each.scales.nbytes for each in self.matrices.values() if each.scales is not None)
        return int(numbers + scales + sum(each.nbytes for each in self.arrays.values()))

    @property
    def parameters(self) -> int:
        matrices = sum(each.numbers.size for each in self.matrices.values())
        return int(matrices + sum(each.size for each in self.arrays.values()))

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        stored = dict(self.arrays)
        for name, matrix in self.matrices.items():
            stored[name] = matrix.numbers
            if matrix.scales is not None:
                stored[f"{name}.scales"] = matrix.scales
        np.savez(folder / "weights.npz", **stored)
        (folder / "shape.json").write_text(json.dumps(asdict(self.shape)))


def drawn(shape: Shape, precision: str) -> Weights:
    """Return random weights: the same numbers in each precision, but for their rounding."""
    generator = np.random.default_rng(0)

    def normal(*extents: int) -> Array:
        return generator.standard_normal(extents, dtype="float32")

    matrices = {}
    for name, (outputs, depth) in shape.matrices().items():
        matrices[name] = quantised(normal(outputs, depth) / np.float32(depth**0.5), BITS[precision])
    arrays = {EMBEDDING: normal(shape.vocabulary, shape.hidden)}
    arrays |= {name: 1 + normal(shape.hidden) / 16 for name in shape.norms()}
    return Weights(shape, precision, matrices, arrays)


def quantised(values: Array, bits: int) -> Matrix:
    """Return a matrix with symmetric numbers of some bits, and scales that float16 represents; 32 bits stay."""
    if bits == 32:
        return Matrix(values)
    blocks = values.reshape(len(values), -1, BLOCK)
    most = 2 ** (bits - 1) - 1
    scales = (np.abs(blocks).max(-1) / most).astype("float16").astype("float32")
    numbers = np.rint(blocks / scales[..., None]).clip(-most, most).astype("int8")
    return Matrix(numbers.reshape(values.shape), scales)


def graph_path(folder: Path, variant: str) -> Path:
    return folder / f"level-{LEVELS[variant]}.onnx"


def decoder_path(folder: Path, variant: str) -> Path:
    """Return the folder of `loopwright.Decoder`."""
    return folder / f"decoder-{LEVELS[variant]}"


def rounds_rows(variant: str) -> bool:
    return LEVELS[variant] == 4


def read_shape(folder: Path) -> Shape:
    return Shape(**json.loads((folder / "shape.json").read_text()))


def read(folder: Path, precision: str) -> Weights:
    """Return what `Weights.write` wrote."""
    shape = read_shape(folder)
    with np.load(folder / "weights.npz") as stored:
        matrices = {name: Matrix(stored[name], stored.get(f"{name}.scales")) for name in shape.matrices()}
        arrays = {name: stored[name] for name in (EMBEDDING, *shape.norms())}
    return Weights(shape, precision, matrices, arrays)


def nibbles(numbers: Array) -> Array:
    """Return numbers of 4 bits, plus 8, as bytes: of each two neighbours, the first is the low half."""
    unsigned = (numbers + 8).astype("uint8")
    return unsigned[..., ::2] | (unsigned[..., 1::2] << 4)
