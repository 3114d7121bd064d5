"""Writes what all engines of a precision are given, but for the GGUF file: weights, ONNX graphs and expected logits.

PYTHON -m benchmarks.decode.export FOLDER PRECISION [smoke]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

from benchmarks.decode import onnx_graph
from benchmarks.decode.child import REFERENCE, SECOND, prompt
from benchmarks.decode.network import in_float32
from benchmarks.decode.weights import LEVELS, SMOKE, Shape, Weights, drawn, graph_path


def main() -> None:
    folder, precision = Path(sys.argv[1]), sys.argv[2]
    weights = drawn(SMOKE if "smoke" in sys.argv[3:] else Shape(), precision)
    weights.write(folder)
    for variant, level in LEVELS.items():
        if precision != "float32" or not variant:
            onnx_graph.write(weights, graph_path(folder, variant), level)
    np.save(folder / REFERENCE, expected(weights, PROMPT))  # last: it says that the folder is complete


PROMPT = 64
"""Tokens of the prompt."""


def expected(weights: Weights, length: int) -> np.ndarray:
    """Return the logits after a prompt, and after one more token."""
    ids = torch.tensor([[*prompt(length), SECOND]])
    with torch.no_grad():
        return in_float32(weights)(input_ids=ids).logits[0, -2:].numpy()


if __name__ == "__main__":
    main()
