"""TVMScript of earlier TVM versions, rewritten in today's words.

Only the words change, each where it stands, so that every line keeps its number and its comments. Pure syntax: what is
translated is not run, and what is not known is left for the parser to refuse.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

from loopwright.codegen.syntax import parse


@dataclass(frozen=True, slots=True)
class Translation:
    """``notes`` say what was translated, in words for the user; none where nothing was."""

    text: str
    notes: tuple[str, ...]


_CALLS = {
    "block": "sblock",
    "block_attr": "sblock_attr",
    "buffer_decl": "Buffer",
    "preflattened_buffer": "match_buffer",
    "block_name_suffix_context": "sblock_name_suffix_context",
}
"""Of namespace T: old name -> new name."""
_KEYWORDS = {"out_sinfo": "out_ty", "sinfo_args": "ty_args"}
_STRINGS = {"tir.noalias": "tirx.noalias", "tir.is_scheduled": "tirx.is_scheduled"}


def translate(text: str) -> Translation:
    """Rewrite what is known to be of an earlier dialect. Text that is no Python is returned as it is."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Translation(text, ())
    edits = _Edits(text)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() if _is_prim_func(node):
                _prim_func(edits, node)
            case ast.ImportFrom(module="tvm.script", names=names):
                for name in names:
                    if name.name == "tir":
                        edits.replace(name, "tirx as " + (name.asname or "tir"), "tir", "tirx")
            case ast.Attribute(value=ast.Name(id="T"), attr=attr) if attr in _CALLS:
                edits.replace(node, f"T.{_CALLS[attr]}", f"T.{attr}", f"T.{_CALLS[attr]}")
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="T"), attr="Buffer"), slice=ast.Tuple() as inside):
                edits.brackets(node, inside)
            case ast.keyword(arg=arg) if arg in _KEYWORDS:
                edits.start_of(node, arg, _KEYWORDS[arg])
            case ast.Constant(value=str(value)) if value in _STRINGS:
                edits.replace(node, repr(_STRINGS[value]), value, _STRINGS[value])
    return Translation(edits.applied(), edits.notes())


def _is_prim_func(node: ast.FunctionDef) -> bool:
    return any(_decorator_name(decorator) == "T.prim_func" for decorator in node.decorator_list)


def _decorator_name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _prim_func(edits: _Edits, function: ast.FunctionDef) -> None:
    """Declare a function with blocks as ``s_tir=True``, and rename its buffer allocations of the old dialect."""
    words = {
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "T"
    }
    if not words & {"block", "sblock"}:
        return
    if "block" in words:
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and node.attr == "alloc_buffer" and ast.unparse(node.value) == "T":
                edits.replace(node, "T.sblock_alloc_buffer", "T.alloc_buffer", "T.sblock_alloc_buffer")
    for decorator in function.decorator_list:
        if _decorator_name(decorator) != "T.prim_func":
            continue
        old, new = "@T.prim_func", "@T.prim_func(s_tir=True)"
        if not isinstance(decorator, ast.Call):
            edits.replace(decorator, "T.prim_func(s_tir=True)", old, new)
        elif not any(keyword.arg == "s_tir" for keyword in decorator.keywords):
            options = ", ".join(["s_tir=True", *(ast.unparse(keyword) for keyword in decorator.keywords)])
            edits.replace(decorator, f"T.prim_func({options})", old, new)


class _Edits:
    """Replacements by place. Places are in UTF-8 bytes, as the syntax tree gives them."""

    def __init__(self, text: str) -> None:
        self._lines = [line.encode() for line in text.split("\n")]
        self._edits: list[tuple[int, int, int, bytes]] = []
        self._counts: Counter[tuple[str, str]] = Counter()

    def replace(self, node: ast.expr | ast.alias, new: str, was: str, becomes: str) -> None:
        """Put ``new`` in place of a node that stands on one line; ``was`` and ``becomes`` are for the note."""
        if node.end_lineno == node.lineno and node.end_col_offset is not None:
            self._add(node.lineno, node.col_offset, node.end_col_offset, new, was, becomes)

    def start_of(self, node: ast.keyword, was: str, becomes: str) -> None:
        self._add(node.lineno, node.col_offset, node.col_offset + len(was.encode()), becomes, was, becomes)

    def brackets(self, node: ast.Subscript, inside: ast.Tuple) -> None:
        """``T.Buffer[…]`` becomes ``T.Buffer(…)``."""
        end = node.value.end_col_offset
        if node.value.end_lineno is None or node.end_lineno is None or end is None or node.end_col_offset is None:
            return
        self._add(node.value.end_lineno, end, end + 1, "(", "T.Buffer[…]", "T.Buffer(…)")
        self._edits.append((node.end_lineno, node.end_col_offset - 1, node.end_col_offset, b")"))

    def applied(self) -> str:
        for line, start, end, new in sorted(set(self._edits), reverse=True):
            old = self._lines[line - 1]
            self._lines[line - 1] = old[:start] + new + old[end:]
        return b"\n".join(self._lines).decode()

    def notes(self) -> tuple[str, ...]:
        return tuple(
            f"translated from the TVMScript of an earlier TVM: {was} to {becomes}" + (f" ({n} times)" if n > 1 else "")
            for (was, becomes), n in self._counts.items()
        )

    def _add(self, line: int, start: int, end: int, new: str, was: str, becomes: str) -> None:
        self._edits.append((line, start, end, new.encode()))
        self._counts[was, becomes] += 1
