"""Assembly as LLVM writes it: its lines of code, the line of the program that each comes from, and its loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LABEL = re.compile(r"^([\w.$@]+):")
_LOCATION = re.compile(r"^\s+\.loc\s+\d+\s+(\d+)")
_DIRECTIVE = re.compile(r"^\s+\.")
_COMMENT = re.compile(r"^\s*(#|//|;|@)")
_REMARK = re.compile(r"\s# .*|//.*")
_LOCAL = ".L"
_TYPE_OF_FUNCTION = re.compile(r"^\s+\.type\s+([\w.$]+),[@%]function")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of code: an instruction, or a label that a jump names or a function has. Numbers count from 1.

    ``program_line`` is the line of the program that the instruction comes from, None if it is unknown.
    """

    number: int
    text: str
    label: str | None
    program_line: int | None


@dataclass(frozen=True, slots=True)
class Loop:
    """Lines ``first`` to ``last``, by number: from a label to the jump back to it. An outermost one has ``depth`` 1."""

    first: int
    last: int
    depth: int
    innermost: bool


def code_lines(text: str) -> list[Line]:
    """Return the lines of an assembly that are code: without directives, comments, and labels that nothing names."""
    functions = {found[1] for found in map(_TYPE_OF_FUNCTION.match, text.splitlines()) if found}
    lines: list[Line] = []
    in_code, location = False, None
    for number, raw in enumerate(text.splitlines(), 1):
        if found := _LABEL.match(raw):
            label = found[1]
            if not label.startswith(_LOCAL):
                in_code, location = label in functions, None
            if in_code:
                lines.append(Line(number, _REMARK.sub("", raw).rstrip(), label, None))
        elif found := _LOCATION.match(raw):
            location = int(found[1]) or None
        elif in_code and raw.strip() and not _DIRECTIVE.match(raw) and not _COMMENT.match(raw):
            lines.append(Line(number, raw, None, location))
    named = set(_words(line.text for line in lines if line.label is None))
    return [line for line in lines if line.label is None or line.label in functions or line.label in named]


def _words(texts: Iterator[str]) -> Iterator[str]:
    for text in texts:
        yield from re.findall(r"[\w.$@]+", text)


def loops(lines: Sequence[Line]) -> list[Loop]:
    """Return the loops of an assembly in order: jumps back to a label, which need not be conditional.

    Jumps back to one label are one loop. Code that a compiler moved elsewhere is not counted to a loop.
    """
    labels: dict[str, int] = {}
    ends: dict[int, int] = {}
    for line in lines:
        if line.label is not None:
            labels[line.label] = line.number
            continue
        target = _target(line.text)
        if target is not None and target.startswith(_LOCAL) and (first := labels.get(target)) is not None:
            ends[first] = line.number
    spans = sorted(ends.items())
    return [
        Loop(
            first,
            last,
            depth=sum(one <= first and last <= other for one, other in spans),
            innermost=not any(first < one and other <= last for one, other in spans),
        )
        for first, last in spans
    ]


def _target(instruction: str) -> str | None:
    """Return the label that an instruction may jump to: x86's and AArch64's branches end with it."""
    words = _REMARK.sub("", instruction).replace(",", " ").split()
    return words[-1] if len(words) > 1 and words[0][0] in "jbct" and words[0] != "callq" else None
