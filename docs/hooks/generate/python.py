"""Summarise a class or a function of the package in Markdown, from its source: for readers without the site."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import griffe

from docs.hooks.generate.tables import code, table

_CLIENT = Path(__file__).parents[3] / "client"


@cache
def _package() -> griffe.Module:
    package = griffe.load("loopwright", search_paths=[_CLIENT])
    assert isinstance(package, griffe.Module)
    return package


def python_summary(name: str) -> str:
    """Return what a name is, in a sentence, with a table of the members of a class or module."""
    found = _package()[name.removeprefix("loopwright.")]
    value = found.final_target if found.is_alias else found
    head = f"**`{name}{_arguments(value)}`**: {_sentence(value)}"
    rows = [
        [code(f"{member.name}{_arguments(member)}"), _sentence(member)]
        for member in _members(value)
        if not member.name.startswith("_") and member.name != "of" and member.has_docstring
    ]
    return "\n\n".join([head, *([table(["member", "what it is or does"], rows)] if rows else [])])


def _members(value: griffe.Object | griffe.Alias) -> list[griffe.Object | griffe.Alias]:
    """Return what a class or module defines, and what a class inherits but for fields, which REST's pages have."""
    own = [member for member in value.members.values() if not member.is_alias]
    inherited = [member.final_target for member in value.inherited_members.values() if isinstance(member, griffe.Alias)]
    return own + [each for each in inherited if not each.is_alias and not each.path.startswith("loopwright.schemas.")]


def _arguments(value: griffe.Object | griffe.Alias) -> str:
    """Return the names of a function's arguments: those that have defaults are followed by an ellipsis."""
    if not isinstance(value, griffe.Function):
        return ""
    names = []
    for each in value.parameters:
        if each.name not in ("self", "cls"):
            stars = {"variadic positional": "*", "variadic keyword": "**"}.get(str(each.kind and each.kind.value), "")
            names.append(f"{stars}{each.name}{'=…' if each.default is not None and not stars else ''}")
    return f"({', '.join(names)})"


def _sentence(value: griffe.Object | griffe.Alias) -> str:
    """Return the first paragraph of a docstring in a line."""
    text = value.docstring.value if value.docstring is not None else ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.sub(r"``([^`]+)``", r"`\1`", first)
