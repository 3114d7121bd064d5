"""Mutations of modules in TVM's JSON: a graph of typed nodes that name each other by number."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.security.fuzz.values import DTYPES, TEXTS, altered, altered_list, nested, value

_KINDS = (
    "ir.EnvFunc", "ffi.Function", "ffi.Module", "runtime.Module", "ffi.Tensor", "ffi.Map", "ffi.Array", "ffi.String",
    "ffi.Shape", "ffi.Dict", "ffi.List", "ir.PointerType", "ir.IRModule", "ir.Op", "ir.GlobalVar", "ir.Span", "int",
    "tirx.PrimFunc", "tirx.Bogus", "relax.Function", "relax.expr.ExternFunc", "target.Target", "target.VDevice",
    "s_tir.Schedule", "s_tir.Trace", "None", "bool", "float", "str", "DataType", "Device", "", "a" * 5000, "\ud800",
)  # fmt: skip
_OPS = (
    "tirx.call_extern", "tirx.call_packed", "tirx.tvm_call_packed", "tirx.call_llvm_intrin", "tirx.address_of",
    "tirx.tvm_access_ptr", "tirx.exp", "prim.if_then_else", "relax.call_tir", "relax.add", "relax.nn.conv2d", "bogus",
)  # fmt: skip

Graph = dict[str, Any]
Edit = Callable[[Graph, random.Random], None]


def mutated(modules: Sequence[str], draw: random.Random) -> str:
    """Return one of the modules with one to four changes."""
    text = draw.choice(modules)
    if draw.random() < 0.06:
        return _damaged(text, draw)
    graph: Graph = json.loads(text)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        if isinstance(graph.get("nodes"), list) and graph["nodes"]:
            draw.choice(_EDITS)(graph, draw)
    return json.dumps(graph)


def _damaged(text: str, draw: random.Random) -> str:
    """The text itself cut, doubled, or with another character."""
    place = draw.randrange(len(text))
    match draw.randrange(5):
        case 0:
            return text[:place]
        case 1:
            return text[:place] + draw.choice("\x00[]{},:\"'\\0-eE\ud800") + text[place + 1 :]
        case 2:
            return text[:place] + "[" * draw.choice((10, 10_000)) + text[place:]
        case 3:
            return text[:place] + text[max(0, place - 50) :]
        case _:
            return json.dumps(json.loads(text), indent=draw.choice((None, 1)))[::-1]


def _node(graph: Graph, draw: random.Random) -> dict[str, Any]:
    found = draw.choice(graph["nodes"])
    return found if isinstance(found, dict) else {"type": "None"}


def _kind(graph: Graph, draw: random.Random) -> None:
    _node(graph, draw)["type"] = draw.choice((draw.choice(_KINDS), _node(graph, draw).get("type"), value(draw)))


def _reference(graph: Graph, draw: random.Random) -> None:
    """Another node in the place of one: of another kind, or one that contains it."""
    numbers = (draw.randrange(len(graph["nodes"])), -1, 0, len(graph["nodes"]), 2**31, 2**63, graph.get("root_index"))
    number = draw.choice((numbers[0], numbers[0], draw.choice(numbers)))
    data = _node(graph, draw).get("data")
    if isinstance(data, dict) and data:
        data[draw.choice(list(data))] = number
    elif isinstance(data, list) and data:
        data[draw.randrange(len(data))] = number


def _cycle(graph: Graph, draw: random.Random) -> None:
    number = draw.randrange(len(graph["nodes"]))
    node = graph["nodes"][number]
    data = node.get("data") if isinstance(node, dict) else None
    if isinstance(data, dict) and data:
        data[draw.choice(list(data))] = number
    elif isinstance(data, list):
        data.append(number)


def _data(graph: Graph, draw: random.Random) -> None:
    node = _node(graph, draw)
    node["data"] = altered(node.get("data"), draw)


def _field(graph: Graph, draw: random.Random) -> None:
    data = _node(graph, draw).get("data")
    if isinstance(data, dict) and data:
        name = draw.choice(list(data))
        if draw.random() < 0.3:
            del data[name]
        else:
            data[draw.choice((name, name, draw.choice(TEXTS)))] = value(draw)


def _number(graph: Graph, draw: random.Random) -> None:
    """An extent, a stride, a lane or a constant."""
    numbers = [node for node in graph["nodes"] if isinstance(node, dict) and node.get("type") in ("int", "ir.IntImm")]
    if numbers:
        node = draw.choice(numbers)
        new = draw.choice((0, -1, 1, 3, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -(2**63), 2**63, 2**64, 1e400, 0.5))
        if isinstance(node.get("data"), dict):
            node["data"]["value"] = new
        else:
            node["data"] = new


def _dtype(graph: Graph, draw: random.Random) -> None:
    types = [
        node for node in graph["nodes"] if isinstance(node, dict) and node.get("type") in ("DataType", "ir.PrimType")
    ]
    if types:
        node = draw.choice(types)
        if isinstance(node.get("data"), dict):
            node["data"]["dtype"] = draw.choice(DTYPES)
        else:
            node["data"] = draw.choice(DTYPES)


def _text(graph: Graph, draw: random.Random) -> None:
    texts = [node for node in graph["nodes"] if isinstance(node, dict) and isinstance(node.get("data"), str)]
    if texts:
        node = draw.choice(texts)
        others = draw.choice(texts)["data"]
        cut = node["data"][: len(node["data"]) // 2]
        node["data"] = draw.choice((draw.choice(TEXTS), draw.choice(_OPS), others, cut, "x" * 100_000))


def _nodes(graph: Graph, draw: random.Random) -> None:
    altered_list(graph["nodes"], draw)


def _top(graph: Graph, draw: random.Random) -> None:
    match draw.randrange(4):
        case 0:
            graph["root_index"] = draw.choice((draw.randrange(len(graph["nodes"])), value(draw)))
        case 1:
            altered(graph, draw)
        case 2:
            graph["metadata"] = draw.choice(({"tvm_version": draw.choice(("0.22.0", "0.8", None, 27))}, value(draw)))
        case _:
            graph["nodes"].append({"type": "ffi.Array", "data": nested(draw.choice((10, 400)))})


def _attribute(graph: Graph, draw: random.Random) -> None:
    """One more entry in a map: an attribute of a function or a block, or a function of the module."""
    maps = [node for node in graph["nodes"] if isinstance(node, dict) and node.get("type") == "ffi.Map"]
    if maps and isinstance(data := draw.choice(maps).get("data"), list):
        key = draw.choice(("calling_conv", "schedule_rule", "pragma_import_c", "Codegen", draw.choice(TEXTS)))
        graph["nodes"].append({"type": "ffi.String", "data": key})
        data += [len(graph["nodes"]) - 1, draw.randrange(len(graph["nodes"]))][: draw.choice((2, 2, 1))]


_EDITS: tuple[Edit, ...] = (
    *(_number, _reference, _dtype, _text, _data) * 2,
    *(_kind, _cycle, _field, _nodes, _top, _attribute),
)
