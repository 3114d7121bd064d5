"""Compiles the decoder of a precision with what the service knows, and saves it.

PYTHON -m benchmarks.decode.compile FOLDER PRECISION
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.decode.export import PROMPT
from benchmarks.decode.network import network
from benchmarks.decode.weights import DECODER, read
from loopwright import Client


def main() -> None:
    folder, precision = Path(sys.argv[1]), sys.argv[2]
    weights = read(folder, precision)
    with Client() as client:
        decoder = client.compile_decoder(
            network(weights), max_length=weights.shape.capacity, prompt_lengths=(PROMPT,), verify=False
        )
    decoder.save(folder / DECODER)


if __name__ == "__main__":
    main()
