"""A CUDA device for tests without one: what its measurer's child runs in place of `workers.timing`.

A program's latency follows from its source, and so the same program is as fast on every call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

ROUNDS = 9


def latency(artifact: dict[str, Any]) -> float:
    """Seconds per call, between 50 and 150 microseconds."""
    digest = hashlib.sha256(artifact["code"].encode()).digest()
    return 1e-6 * (50 + 100 * digest[0] / 255)


def measure(
    target_kind: str, device_index: int, args: list[Any], candidates: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    assert target_kind == "cuda"
    for position, candidate in enumerate(candidates):
        assert "__global__ void" in candidate["artifact"]["code"]
        yield {"candidate": position, "run_secs": [latency(candidate["artifact"])] * 5}


def race(
    target_kind: str,
    device_index: int,
    args: list[Any],
    outputs: list[bool],
    reference: dict[str, Any],
    contenders: list[dict[str, Any]],
    seed: int,
) -> Iterator[dict[str, Any]]:
    assert reference["format"] == "so"  # for the host
    yield {
        "contenders": [
            {
                "run_secs": [latency(artifact) * (1 + 0.001 * number) for number in range(ROUNDS)],
                "max_abs_error": 0.0,
                "max_rel_error": 0.0,
            }
            for artifact in contenders
        ],
        "library": None,
    }
