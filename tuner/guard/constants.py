"""The constants of a script: the JSON in `metadata`, which TVM prints before the module."""

from __future__ import annotations

import ast
import re

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.versions import TVM_VERSION
from tuner.guard.graph import check_graph, read_graph
from tuner.guard.source import refuse

SEND = "print the module with `mod.script(show_meta=True)`, or send it as TVM JSON (`tvm.ir.save_json(mod)`)"

_KINDS = re.compile(
    r"None|int|ffi\.(String|Array|Map|Tensor)|ir\.(PrimType|IntImm|GenericConst)"
    r"|relax\.(ShapeType|TensorType|expr\.ShapeExpr)"
)
"""Of nodes: tensors with their types, in lists by name."""


def check_metadata(node: ast.Assign) -> dict[str, int]:
    """Return how many constants of each kind `metadata = tvm.ir.load_json("…")` has. TVM's parser loads them.

    Raises:
        UnsupportedVersion: another TVM wrote the JSON.
        InvalidModule: anything else is assigned, or the JSON has more than constants.
    """
    match node.value:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="tvm"), attr="ir"), attr="load_json"),
            args=[ast.Constant(value=str(text))],
            keywords=[],
        ):
            return _counts(node.lineno, text)
        case _:
            refuse(node.lineno, "`metadata` that is not `tvm.ir.load_json` of a string", SEND)


def _counts(line: int, text: str) -> dict[str, int]:
    try:
        graph = read_graph(text)
        header = graph.get("metadata", graph.get("attrs"))
        version = header.get("tvm_version") if isinstance(header, dict) else None
        if version is None or version == TVM_VERSION:
            nodes = graph["nodes"]
            kinds = {str(node["type"]) for node in nodes}
            check_graph(nodes)
            items = nodes[graph["root_index"]]["data"]
            lists = zip(items[::2], items[1::2], strict=True)
            counts = {str(nodes[key]["data"]): len(nodes[value]["data"]) for key, value in lists}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        refuse(line, "`metadata` without TVM's JSON of constants", SEND)
    if version != TVM_VERSION:
        raise UnsupportedVersion(
            f"line {line}: the constants in `metadata` were written by TVM {version or 'of unknown version'}, but TVM "
            f"{TVM_VERSION} runs here; make and print the module with that version, or let its constants be parameters"
        )
    if foreign := sorted(kind for kind in kinds if not _KINDS.fullmatch(kind)):
        refuse(line, f"`metadata` with a {foreign[0]}, where constants are taken", SEND)
    return counts
