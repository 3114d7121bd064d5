"""The graph in TVM's JSON: nodes that name by number what they contain. Imports TVM: run it in a child that may die.

TVM's loader descends from a node to what it contains, and begins again with a node that it has not finished. So a node
that contains itself, or too many within each other, overflow its stack. And the loader puts None into every field of an
object that has no number, also into those that TVM follows without a look.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import tvm
from tvm_ffi import core

_DEPTH = 500
"""Of nodes within nodes. The loader overflows a stack of 8 MiB between 1,000 and 2,000; models have some 30."""
_LISTS = frozenset({"ffi.Array", "ffi.List"})
_MAPS = frozenset({"ffi.Map", "ffi.Dict"})
_WRITTEN_IN_PLACE = frozenset({"int", "bool", "float", "DataType"})
"""Types of fields that have a value where others have the number of a node."""
_MAY_BE_NONE = frozenset({"span", "attrs", "derive_func", "vdevice"})
"""Fields that TVM leaves empty though their types do not say so."""

_CALLED = frozenset(
    {"ir.Op", "ir.GlobalVar", "ir.Var", "relax.expr.DataflowVar", "relax.expr.ExternFunc", "relax.expr.Function"}
)
"""Kinds of what a call may call. The type of the field is that of any expression."""
_LOOPS = frozenset(map(int, tvm.tirx.ForKind))

Node = dict[str, Any]
Known = dict[tuple[int, int], bool]
"""What is known of lists, by their numbers and types: many nodes may contain the same."""


def read_graph(text: str) -> Any:
    """Return what a text of JSON has. Raises ValueError or RecursionError for another text, and if an object has a key
    twice."""
    return json.loads(text, object_pairs_hook=_unique)


def check_graph(nodes: list[Node]) -> None:
    """Raise ValueError unless the loader can take these nodes, as far as their numbers tell.

    Nodes of another form raise KeyError, IndexError, TypeError or AttributeError.

    TVM writes what a node contains before the node, and so must everybody else.
    """
    depths: list[int] = []
    known: Known = {}
    for number, node in enumerate(nodes):
        contents = _contents(node)
        for content in contents:
            if type(content) is not int or not 0 <= content < number:
                raise ValueError(
                    f"node {number}, a {node['type']:.80}, may contain earlier nodes only: {content!r:.40}"
                )
        if node["type"] == "tirx.For" and node["data"]["kind"] not in _LOOPS:
            raise ValueError(
                f"node {number} is a loop of the kind {node['data']['kind']!r:.40}, which TVM does not know"
            )
        if node["type"] == "ir.Call" and nodes[node["data"]["op"]]["type"] not in _CALLED:
            raise ValueError(f"node {number} calls a {nodes[node['data']['op']]['type']:.80}")
        depths.append(1 + max((depths[content] for content in contents), default=0))
        if depths[-1] > _DEPTH:
            raise ValueError(f"more than {_DEPTH} nodes are within each other")
        for field, schema in _fields(node["type"]).items() if isinstance(node.get("data"), dict) else ():
            content = node["data"].get(field)
            if content is not None and field not in _MAY_BE_NONE and _lacks_value(nodes, content, schema, known):
                raise ValueError(f"node {number}, a {node['type']:.80}, has nothing as {field}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises ValueError if it has a key twice, of which TVM may read the other one."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _contents(node: Node) -> list[Any]:
    """Return the numbers of the nodes that a node contains."""
    kind, data = node["type"], node.get("data")
    if kind in _LISTS or kind in _MAPS:
        if not isinstance(data, list):
            raise ValueError(f"a {kind} is no list")
        return data
    return [data[field] for field in _fields(kind) if field in data] if isinstance(data, dict) else []


@functools.cache
def _fields(kind: str) -> dict[str, dict[str, Any]]:
    """Return the types of the fields of a kind that are nodes; none for a kind that TVM does not know."""
    try:
        info: core.TypeInfo | None = core._lookup_or_register_type_info_from_type_key(kind)
    except ValueError:
        return {}
    found: dict[str, dict[str, Any]] = {}
    while info is not None:
        for field in info.fields or ():
            schema = json.loads(field.metadata["type_schema"])
            if schema["type"] not in _WRITTEN_IN_PLACE:
                found.setdefault(field.name, schema)
        info = info.parent_type_info
    return found


def _lacks_value(nodes: list[Node], number: int, schema: dict[str, Any], known: Known) -> bool:
    """Return whether a node is None, or has an element that is, where its type says that there is a value."""
    kind, node, of = schema["type"], nodes[number], schema.get("args", ())
    if kind == "Optional":
        return node["type"] != "None" and _lacks_value(nodes, number, of[0], known)
    if kind in ("Any", "Variant", "Union"):
        return False
    if node["type"] in _LISTS | _MAPS and of:
        key = number, id(schema)
        if key not in known:
            parts = enumerate(node["data"])
            known[key] = any(_lacks_value(nodes, each, of[place % len(of)], known) for place, each in parts)
        return known[key]
    return node["type"] == "None"
