"""Mutations of traces: as a design space that is submitted, and as records that are imported."""

from __future__ import annotations

import base64
import copy
import json
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from db.exchange.json_pair import pack
from loopwright.codegen.program.annotations import OF_SCHEDULES
from tests.security.fuzz import modules
from tests.security.fuzz.seeds import Scheduled
from tests.security.fuzz.values import TEXTS, altered, altered_list, value
from tuner.space.user import INSTRUCTIONS

_UNLISTED = (
    "UnsafeSetDType",
    "Tensorize",
    "AnnotateBufferAccess",
    "UnsafeHideBufferAccess",
    "SetAxisSeparator",
    "",
    "\ud800",
)
_INTRINSICS = ("dot_16x4_vnni", "mma_sync_m16n8k8_f16f16f32", "no such intrinsic", "\x00", 7)
_ANNOTATED = (
    *sorted(OF_SCHEDULES),
    "pragma_import_c",
    "pragma_scope",
    "loopwright.rule",
    "loopwright.knob.x",
    "a" * 5000,
)

Trace = list[Any]
Edit = Callable[[list[Any], random.Random], None]


def space(scheduled: Sequence[Scheduled], draw: random.Random) -> tuple[str, Any]:
    """Return a workload as TVM's JSON, and a space of mutated traces: seldom of another workload."""
    workload = draw.choice(scheduled)
    origin = workload if draw.random() < 0.9 else draw.choice(scheduled)
    traces: Any = [trace(draw.choice(origin.traces), draw) for _ in range(draw.choice((1, 1, 2)))]
    return workload.module_json, traces if draw.random() < 0.95 else altered(traces, draw)


def archive(scheduled: Sequence[Scheduled], draw: random.Random) -> bytes:
    """Return TVM's pair of files in a tar: two workloads and a few records of them, mutated."""
    chosen = [draw.choice(scheduled) for _ in range(2)]
    workloads = [json.dumps(_workload(one.workload_line, draw)) for one in chosen]
    records = [json.dumps(_record(number % 2, chosen[number % 2], draw)) for number in range(3)]
    packed = pack({"database_workload": _lines(workloads, draw), "database_tuning_record": _lines(records, draw)})
    return packed if draw.random() < 0.95 else _damaged(packed, draw)


def trace(original: Trace, draw: random.Random) -> Any:
    """Return a trace with one to three changes."""
    found = copy.deepcopy(original)
    for _ in range(draw.choice((1, 1, 2, 3))):
        if isinstance(found, list) and len(found) == 2 and isinstance(found[0], list) and found[0]:
            draw.choice(_EDITS)(found, draw)
        else:
            return altered(found, draw)
    return found


def _instructions(found: Trace, draw: random.Random) -> None:
    altered_list(found[0], draw)


def _instruction(found: Trace, draw: random.Random) -> Any:
    return draw.choice(found[0])


def _kind(found: Trace, draw: random.Random) -> None:
    instruction = _instruction(found, draw)
    if isinstance(instruction, list) and instruction:
        instruction[0] = draw.choice((draw.choice(sorted(INSTRUCTIONS)), draw.choice(_UNLISTED), value(draw)))


def _part(found: Trace, draw: random.Random) -> None:
    """Its inputs, attributes or outputs."""
    instruction = _instruction(found, draw)
    if isinstance(instruction, list) and len(instruction) == 4:
        place = draw.randrange(1, 4)
        instruction[place] = altered(instruction[place], draw)


def _input(found: Trace, draw: random.Random) -> None:
    """A loop in the place of a block, a variable that comes later, or an expression."""
    one, other = _instruction(found, draw), _instruction(found, draw)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) == 4 and isinstance(one[1], list):
        names = other[3] if isinstance(other[3], list) and other[3] else ["b0"]
        new = draw.choice((draw.choice(names), None, 0, -1, 2**40, "l99999", '"x"', '"\ud800"', 1e400))
        place = draw.randrange(len(one[1]) + 1)
        one[1][place : place + 1] = [new]


def _decision(found: Trace, draw: random.Random) -> None:
    if isinstance(found[1], list) and found[1]:
        place = draw.randrange(len(found[1]))
        new = draw.choice((0, -1, 7, 2**31, 2**63, [0, 0], [1, -1], [2**31, 2**33], None, "1", 0.5, [], [[1]]))
        old = found[1][place]
        number = old[0] if isinstance(old, list) and old else 0
        found[1][place] = draw.choice(([draw.randrange(-1, 40), new], [number, new], value(draw)))


def _decisions(found: Trace, draw: random.Random) -> None:
    found[1] = altered(found[1], draw)


def _annotation(found: Trace, draw: random.Random) -> None:
    kind = draw.choice(("Annotate", "Unannotate"))
    new = draw.choice((0, -1, 2**40, '"x"', "x", None, [1, 2], "b0", 0.5))
    inputs = ["b0", new] if kind == "Annotate" else ["b0"]
    found[0].insert(draw.randrange(len(found[0]) + 1), [kind, inputs, [draw.choice(_ANNOTATED)], []])


def _step(found: Trace, draw: random.Random) -> None:
    """A step that fits nothing, or one with an enormous factor, or with an expression of its own."""
    steps: tuple[list[Any], ...] = (
        ["Tensorize", ["l1"], [draw.choice(_INTRINSICS), 1], []],
        ["Split", ["l1", 2**40, None], [1, 1], ["x0", "x1"]],
        ["Split", ["l1", 0, None], [1, 1], ["x0", "x1"]],
        ["Vectorize", ["l1"], [], []],
        ["Bind", ["l1"], ["threadIdx.x"], []],
        ["Bind", ["l1"], [draw.choice(TEXTS)], []],
        ["SetScope", ["b0"], [0, draw.choice(("local", "global", "shared", *TEXTS))], []],
        ["StorageAlign", ["b0"], [0, -1, 2**31, -1], []],
        ["CacheRead", ["b0", []], [draw.choice((0, -1, 99)), draw.choice(("local", *TEXTS))], ["c0"]],
        ["SamplePerfectTile", ["l1"], [draw.choice((0, -1, 2, 1000, 2**31)), draw.choice((0, -1, 16))], ["s0", "s1"]],
        ["SampleCategorical", [], [draw.choice(([], [1, 2], [0] * 1000)), [1.0, 2.0]], ["s0"]],
        ["TransformLayout", ["b0"], [0, 0, draw.choice(("", "x", "{}", '{"root":0}')), None, False], []],
        ["GetSBlock", [], [draw.choice(TEXTS), "main"], ["b0"]],
        ["PadEinsum", ["b0"], [draw.choice(([0], [-1], [16, 16, 16], [2**31] * 3))], []],
    )
    found[0].insert(draw.randrange(len(found[0]) + 1), draw.choice(steps))


_EDITS: tuple[Edit, ...] = (
    *(_decision, _input, _part) * 2,
    *(_instructions, _kind, _decisions, _annotation, _step),
)


def _workload(line: list[Any], draw: random.Random) -> Any:
    if draw.random() < 0.6:
        return line
    if draw.random() < 0.3:
        return altered(copy.deepcopy(line), draw)
    text = base64.b64decode(line[1])[8:].decode()
    content = modules.mutated([text], draw).encode(errors="surrogatepass")
    length = struct.pack("<Q", draw.choice((len(content), len(content), 0, 2**63)))
    packed = base64.b64encode(length + content).decode()
    return [line[0], draw.choice((packed, packed, packed[: len(packed) // 2], packed + "="))]


def _record(number: int, workload: Scheduled, draw: random.Random) -> Any:
    record: list[Any] = [
        number,
        [
            trace(draw.choice(workload.traces), draw) if draw.random() < 0.6 else draw.choice(workload.traces),
            [1e-3, 2e-3],
            {"kind": "llvm", "mcpu": "haswell", "num-cores": 2},
            workload.args,
        ],
    ]
    if draw.random() < 0.4:
        record = copy.deepcopy(record)
        part = draw.randrange(1, 4)
        record[1][part] = altered(record[1][part], draw)
    return record if draw.random() < 0.9 else altered(copy.deepcopy(record), draw)


def _lines(lines: list[str], draw: random.Random) -> str:
    ends = draw.choice(("\n", "\n", "\n", "\r\n", "\n\n", "", "\x00", "\u2028"))
    return "".join(line + ends for line in lines)


def _damaged(packed: bytes, draw: random.Random) -> bytes:
    """The tar with another byte, cut off, or doubled."""
    place = draw.randrange(len(packed))
    match draw.randrange(3):
        case 0:
            return packed[:place] + bytes([draw.randrange(256)]) + packed[place + 1 :]
        case 1:
            return packed[:place]
        case _:
            return packed[:place] + packed
