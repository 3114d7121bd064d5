"""Parse the text of a TVMScript submission, without its import lines. This file does not use TVM."""

from __future__ import annotations

import ast
from typing import NoReturn

from loopwright.codegen import syntax
from loopwright.codegen.errors import InvalidModule
from tuner.guard.dialect import IMPORTS

MAX_CHARS = 1_000_000
"""Checking this much takes 4 s and 300 MB."""


TOO_DEEP = "the script is nested too deeply; bind parts of it to names, or send TVM JSON"


def refuse(line: int, what: str, instead: str) -> NoReturn:
    """Raise InvalidModule with the forbidden part of the line (1-based) and what to write instead."""
    raise InvalidModule(f"line {line}: {what}; {instead}")


def parse(text: str) -> ast.Module:
    """Return the syntax tree of Python text.

    Raises:
        InvalidModule: too long, too deeply nested, or not Python.
    """
    if len(text) > MAX_CHARS:
        raise InvalidModule(f"the script has {len(text):,} characters, of which {MAX_CHARS:,} are taken; send TVM JSON")
    try:
        return syntax.parse(text)
    except SyntaxError as error:
        refuse(error.lineno or 1, f"not Python syntax ({error.msg})", "send TVMScript as `mod.script()` prints it")
    except (RecursionError, MemoryError):
        raise InvalidModule(TOO_DEEP) from None
    except ValueError as error:
        raise InvalidModule(f"the script is not plain text ({error}); send it as UTF-8 without null bytes") from None


def without_imports(text: str) -> tuple[str, ast.Module]:
    """Return the text with its import lines blanked, so that line numbers are kept, and the tree of that text.

    Raises:
        InvalidModule: as for `parse`, or an import of something that TVMScript does not need.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    tree = parse(text)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if not imports:
        return text, tree
    lines = text.split("\n")
    taken = {line for node in tree.body if node not in imports for line in (node.lineno, node.end_lineno)}
    for node in imports:
        _check_import(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            if line in taken:
                refuse(line, "an import and a statement on one line", "write them on lines of their own")
            lines[line - 1] = ""
    text = "\n".join(lines)
    return text, parse(text)


def _check_import(node: ast.Import | ast.ImportFrom) -> None:
    names = [f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        if set(names) <= {"tvm", "tvm.script"}:
            return
    elif node.level == 0 and set(names) <= IMPORTS.get(node.module or "", frozenset()):
        return
    elif any(alias.name == "tir" for alias in node.names) or "tir" in (node.module or "").split("."):
        refuse(
            node.lineno,
            "`tir` is TVMScript of an earlier TVM",
            "write `from tvm.script import tirx as T` and `@T.prim_func(s_tir=True)`",
        )
    refuse(
        node.lineno,
        f"`{ast.unparse(node)}` is not accepted",
        "import only `ir as I`, `tirx as T` and `relax as R` from tvm.script",
    )
