"""Write the dictionary by which traces are compressed (`db.engine.compression`), from traces of the design spaces.

It is a part of what a database contains: a change of it needs a migration that compresses all traces anew.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import tvm
import zstandard
from tvm import topi
from tvm.target import Target

from db.engine.compression import LEVEL
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from
from tests.support import convolution_programs, rule_programs
from tuner.space.builtin import builtin_space

_BYTES = 110 * 2**10
"""zstd's own default. Real traces take 2.3 times as much with 32 KiB, and 1.3 times with 64 KiB."""
_SEGMENT, _MATCH = 2000, 6
"""Bytes of the parts that the dictionary is made of, and of what is searched for. Segments of the default length take
1.7 times as much."""
_PER_SKETCH = 4


def main() -> None:
    traces: list[bytes | bytearray | memoryview] = [*_traces()]
    half, whole = (zstandard.train_dictionary(_BYTES, some, k=_SEGMENT, d=_MATCH) for some in (traces[::2], traces))
    Path(sys.argv[1]).write_bytes(whole.as_bytes())
    others = traces[1::2]
    without, with_it = (
        sum(len(zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary).compress(trace)) for trace in others)
        for dictionary in (None, half)
    )
    print(
        f"{sum(map(len, others))} bytes of traces: {without} compressed, {with_it} with a dictionary of as many others"
    )


def _traces() -> Iterator[bytes]:
    for (mod, target), seed in zip(_programs(), itertools.count(1), strict=False):
        space = builtin_space(mod, target, seed)
        for trace in space.traces:
            for attempt in range(_PER_SKETCH):
                schedule = space.replay(trace, seed + attempt)
                if schedule is not None:
                    yield trace_to_json(schedule.trace).encode()


def _programs() -> Iterator[tuple[tvm.IRModule, Target]]:
    narrow = target_from({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 8})
    wide = target_from({"kind": "llvm", "mcpu": "x86-64-v4", "num-cores": 16})
    gpu = target_from({"kind": "cuda", "arch": "sm_80"})
    programs = rule_programs
    images = convolution_programs
    functions = [
        programs.product(8, 16, 32),
        programs.product(64, 64, 64, topi.nn.relu),
        programs.product(128, 256, 512),
        programs.linear(64, 768, 3072),
        programs.batched(12, 128, 64, 128),
        programs.byte_product(64, 128, 256),
        programs.attention(2, 64, 4, 32),
        programs.column_sum(256, 512),
        programs.softmax(128, 256),
        programs.layer_norm(128, 768),
        programs.mean(256, 512),
        programs.average_pool(64, 28, 28),
        programs.silu(128, 512),
        images.conv_nhwc(28, 64, 128, 3),
        images.conv_nchw(28, 64, 64, 3),
        images.depthwise_nhwc(28, 96, 3, 1),
        images.depthwise_nchw(28, 96, 3, 1),
    ]
    for function in functions:
        yield function, narrow
        yield function, wide
    for function in functions[:2]:
        yield function, gpu


if __name__ == "__main__":
    main()
