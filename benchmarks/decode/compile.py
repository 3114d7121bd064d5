"""Compiles the decoder of a precision with what the service knows, and saves it.

PYTHON -m benchmarks.decode.compile FOLDER PRECISION VARIANT
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.decode.export import PROMPT
from benchmarks.decode.network import network
from benchmarks.decode.weights import decoder_path, read, rounds_rows
from loopwright import Client


def main() -> None:
    folder, precision, variant = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    weights = read(folder, precision)
    with Client() as client:
        decoder = client.compile_decoder(
            network(weights),
            max_length=weights.shape.capacity,
            prompt_lengths=(PROMPT,),
            verify=False,
            int8_activations=rounds_rows(variant),
        )
    decoder.save(decoder_path(folder, variant))


if __name__ == "__main__":
    main()
