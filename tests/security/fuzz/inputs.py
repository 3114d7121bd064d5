"""Requests with hostile inputs, as users send them. The same seed and number make the same request."""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass
from typing import Any

from tests.security.fuzz import modules, scripts, traces
from tests.security.fuzz.seeds import Seeds
from tests.security.fuzz.values import TEXTS, altered, value
from tests.support.played_fleet import TARGET

_TARGETS: tuple[Any, ...] = (
    "auto", "llvm", "cuda", "c", "llvm -mcpu=haswell", "llvm -mcpu", "llvm -mattr=+avx2,-sse -num-cores 2", "llvm -=-",
    "llvm -num-cores=-1", "llvm -mtriple=x86_64-linux-gnu -device=arm_cpu", "nvidia/nvidia-h100", "{", "{}", "[]",
    "null", "llvm -libs=mkl", "llvm -mcpu=" + "a" * 5000, "llvm\x00", "\ud800", "llvm --system-lib", "hip", "composite",
    "raspberry-pi/4b-aarch64", "test", "ext_dev", "llvm -cl-opt=-x:bool=1", '{"kind": "llvm", "mcpu": 7}',
    '{"kind": ["llvm"]}',
)  # fmt: skip
_FIELDS: dict[str, tuple[Any, ...]] = {
    "mattr": (["+avx2"], "+avx2", ["avx2"], [7], ["+" + "a" * 100], ["+avx512f"] * 300),
    "num-cores": (0, -1, 10**9, 2**63, 2**64, 1.5, True, "2", None),
    "mtriple": ("riscv64", "x", "", "aarch64-linux-gnu", "wasm32", "a-b-c-d-e-f"),
    "host": ("llvm", "c", {"kind": "llvm"}, {"kind": "cuda"}, {"host": {"host": {}}}, 7, []),
    "keys": (["cpu"], "cpu", [], ["\x00"], [{}], ["arm_cpu", "gpu", "hvx"]),
    "kind": ("cuda", "c", "", "rocm", "vulkan", "hexagon", 7, None, {}, "llvm" * 1000),
    "mcpu": ("znver4", "x86-64-v4", "cortex-a72", "sm_90", "", "help", "native", "generic", 7),
    "tag": ("nvidia/nvidia-h100", "x", "", 7),
    **dict.fromkeys(
        ("cl-opt", "libs", "jit", "mfloat-abi", "fast-math", "vector-width", "feature.x", "", "\x00"), (1,)
    ),
}
_SHAPES: tuple[Any, ...] = (
    None, {}, {"n": 8}, {"n": 0}, {"n": -1}, {"n": 2**31}, {"n": 2**62}, {"n": 2**63}, {"n": 2**70}, {"m": 4},
    {"n": "8"}, {"n": 8.0}, {"n": None}, {"": 1}, {"\ud800": 1}, {"x" * 1000: 1}, [], [{}],
    [{"n": 8}, {"n": 16}], [{"n": 8}] * 3, [{"n": 4}, {"m": 4}], [{"n": 0}],
    {f"n{i}": i for i in range(300)}, [[]], "n=8",
)  # fmt: skip
_BUDGETS: tuple[Any, ...] = (
    {}, {"max_trials": 1}, {"max_trials": 0}, {"max_trials": 10**9}, {"max_trials": 1.5}, {"max_seconds": 1e-300},
    {"max_seconds": float("inf")}, {"max_seconds": float("nan")}, {"max_seconds": 1e308}, {"max_seconds": 10**400},
    {"max_seconds": "1e400"}, {"max_seconds": "nan"}, {"max_trials": True}, None, [],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """``content`` goes as it is; ``query`` is encoded."""

    method: str
    path: str
    content: bytes | None = None
    query: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.query or ''} {self.content!r}"


def request(seeds: Seeds, seed: int, number: int) -> Request:
    """Return the request of that number in the corpus of that seed."""
    draw = random.Random(f"{seed} {number}")
    kind = draw.choices(range(6), (42, 25, 12, 9, 5, 7))[0]
    if kind == 0:
        return _submission(draw, {"format": "tvmscript", "data": scripts.mutated(seeds.scripts, draw)})
    if kind == 1:
        return _submission(draw, {"format": "tvm-json", "data": modules.mutated(seeds.modules, draw)})
    if kind == 2:
        module, space = traces.space(seeds.scheduled, draw)
        return _submission(draw, {"format": "tvm-json", "data": module}, space=space)
    if kind == 3:
        return Request("POST", "/api/v1/records/import", traces.archive(seeds.scheduled, draw))
    if kind == 4:
        return _lookup(seeds, draw)
    return _fields(seeds, draw)


def _json(path: str, body: Any) -> Request:
    # As a program in C would: ASCII, in which half characters are escapes, and NaN and Infinity by name.
    return Request("POST", f"/api/v1{path}", json.dumps(body).encode())


def _submission(draw: random.Random, module: Any, **fields: Any) -> Request:
    path = draw.choice(("/jobs/preview", "/jobs/preview", "/jobs"))
    if draw.random() < 0.15:
        fields["shapes"] = draw.choice(_SHAPES)
    if draw.random() < 0.1:
        fields["exact_math"] = True
    if draw.random() < 0.1:
        fields["math"] = "tf32"
    return _json(path, {"module": module, **fields})


def _lookup(seeds: Seeds, draw: random.Random) -> Request:
    functions: list[Any] = [
        {"format": "tvm-json", "data": modules.mutated([draw.choice(seeds.scheduled).module_json], draw)}
        for _ in range(draw.choice((1, 1, 3)))
    ]
    body = {"functions": functions, "target": draw.choice(("auto", "auto", _target(draw)))}
    return _json("/workloads/lookup", body if draw.random() < 0.8 else altered(body, draw))


def _fields(seeds: Seeds, draw: random.Random) -> Request:
    """What stands beside a module, which is good: target, shapes, budget, names and the like; or a query."""
    if draw.random() < 0.25:
        target = _target(draw)
        text = target if isinstance(target, str) else json.dumps(target)
        # A query has no half characters: those become '?'.
        query = (("target", text.encode(errors="replace").decode()),)
        return Request("GET", draw.choice(("/api/v1/records", "/api/v1/bests", "/api/v1/records/export")), query=query)
    body: dict[str, Any] = {"module": {"format": "tvmscript", "data": seeds.scripts[draw.randrange(3)]}}
    for _ in range(draw.choice((1, 1, 2))):
        match draw.randrange(5):
            case 0 | 1:
                body["target"] = _target(draw)
            case 2:
                body["shapes"] = draw.choice(_SHAPES)
            case 3:
                body["budget"] = draw.choice(_BUDGETS)
            case _:
                name = draw.choice(
                    ("name", "seed", "priority", "space", "force", "visibility", "exact_math", "math", "x")
                )
                body[name] = draw.choice((value(draw), draw.choice(TEXTS)))
    return _json(draw.choice(("/jobs/preview", "/jobs")), body if draw.random() < 0.8 else altered(body, draw))


def _target(draw: random.Random) -> Any:
    match draw.randrange(4):
        case 0:
            return draw.choice(_TARGETS)
        case 1:
            text = list("llvm -mcpu=haswell -num-cores=2")
            text[draw.randrange(len(text))] = draw.choice(string.printable + "\x00\u2028é\ud800")
            return "".join(text)
        case _:
            fields = json.loads(TARGET)
            for name in draw.sample(list(_FIELDS), draw.choice((1, 1, 2))):
                fields[name] = draw.choice(_FIELDS[name])
            return fields if draw.random() < 0.8 else altered(fields, draw)
