"""Mutations of TVMScript, token by token and line by line."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tests.security.fuzz.values import DTYPES, NUMBERS, TEXTS

_TOKEN = re.compile(r"[^\S\n]+|\n|\w+(?:\.\w+)*|\"[^\"\n]*\"|.")
_NAMES = (
    "T", "R", "I", "cls", "Module", "None", "True", "__import__", "exec", "eval", "open", "print", "range", "tvm",
    "T.evaluate", "T.grid", "T.serial", "T.parallel", "T.vectorized", "T.unroll", "T.thread_binding", "T.axis.remap",
    "T.axis.spatial", "T.axis.reduce", "T.axis.opaque", "T.Buffer", "T.handle", "T.match_buffer", "T.sblock", "T.init",
    "T.reads", "T.writes", "T.where", "T.alloc_buffer", "T.sblock_alloc_buffer", "T.decl_buffer", "T.call_extern",
    "T.call_packed", "T.call_llvm_pure_intrin", "T.tvm_access_ptr", "T.address_of", "T.reinterpret", "T.Select",
    "T.if_then_else", "T.floordiv", "T.truncmod", "T.shift_left", "T.ramp", "T.broadcast", "T.Cast", "T.max", "T.min",
    "T.meta_var", "T.attr", "T.func_attr", "T.sblock_attr", "T.block_attr", "T.int64", "T.float32", "T.bool", "T.let",
    "T.Let", "T.float8_e4m3fn", "T.bfloat16", "T.Assume", "R.Tensor", "R.Shape", "R.Tuple", "R.Object", "R.const",
    "R.call_tir", "R.call_dps_packed", "R.call_pure_packed", "R.match_cast", "R.zeros", "R.shape", "R.dtype", "R.str",
    "R.output", "R.dataflow", "R.nn.conv2d", "R.matmul", "R.reshape", "R.take", "R.strided_slice", "R.print",
    "lambda", "yield", "await", "async", "global", "import", "class", "def", "while", "return", "assert",
)  # fmt: skip
_LINES = (
    "import os", "T.evaluate(0)", "T.evaluate(T.call_extern('int32', 'abort'))", "pass", "return", "break", "continue",
    "while True:", "with T.init():", "with T.sblock('x'):", "for q in range(4):", "for q in T.vectorized(3):",
    "for q in T.thread_binding(4, thread='threadIdx.x'):", "T.where(False)", "T.reads()", "T.writes()",
    "x: T.int32", "T.func_attr({'calling_conv': 1})", "T.sblock_attr({'meta_schedule.x': None})", "if T.bool(True):",
    "assert 0 == 1, 'no'", "S = T.sblock_alloc_buffer((1 << 40,), 'float32')",
    "@T.prim_func(s_tir=True)",
    "T.attr(0, 'pragma_import_c', 'int main;')", "lv: R.Tensor = R.zeros(R.shape([1 << 20, 1 << 20]), 'float32')",
    "T.evaluate(T.ramp(0, 1, 1 << 20))", "\tT.evaluate(0)", "\ufeff", "# -*- coding: utf-7 -*-", "\x0c",
)  # fmt: skip
_LOOK_ALIKES = str.maketrans({"a": "\u0430", "e": "\u0435", "T": "\uff34", "i": "\u2170", "(": "\uff08"})
_OPERATORS = ("//", "**", "<<", ">>", "==", "!=", ":=", "->", "is", "in", "not", "and", *"+-*/%@&|^<>=~,:;.()[]{}")
_CHARACTERS = "\x00\x07\x0b\x1b\r\u200b\u202e\u2028\ufeff\ud800\U000e0041\\\"'`#"

Edit = Callable[[list[str], random.Random, Sequence[str]], None]


def mutated(scripts: Sequence[str], draw: random.Random) -> str:
    """Return one of the scripts with one to four changes."""
    tokens = _TOKEN.findall(draw.choice(scripts))
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        draw.choice(_EDITS)(tokens, draw, scripts)
    return "".join(tokens)


def _place(tokens: list[str], draw: random.Random, pattern: str = r"\S") -> int:
    """Return where a token stands that begins as the pattern says, if any does."""
    found = [place for place, token in enumerate(tokens) if re.match(pattern, token)]
    if found:
        return draw.choice(found)
    tokens.append("x")
    return len(tokens) - 1


def _swap(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    one, other = _place(tokens, draw), _place(tokens, draw)
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _repeat(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    place = _place(tokens, draw)
    tokens[place] *= draw.choice((2, 2, 2, 50))


def _delete(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    del tokens[_place(tokens, draw)]


def _number(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    tokens[_place(tokens, draw, r"\d")] = draw.choice(NUMBERS)


def _dtype(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    tokens[_place(tokens, draw, r"\"(u?int|float|bool)")] = f'"{draw.choice(DTYPES)}"'


def _string(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    tokens[_place(tokens, draw, '"')] = repr(draw.choice(TEXTS))


def _name(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    tokens[_place(tokens, draw, r"[A-Za-z]")] = draw.choice(_NAMES)


def _other_name(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    """A name of the program itself in the place of another: a buffer where an index is meant, and the like."""
    tokens[_place(tokens, draw, r"[A-Za-z]")] = tokens[_place(tokens, draw, r"[A-Za-z]")]


def _operator(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    tokens[_place(tokens, draw, r"[^\w\s\"]")] = draw.choice(_OPERATORS)


def _look_alike(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    place = _place(tokens, draw)
    tokens[place] = tokens[place].translate(_LOOK_ALIKES)


def _character(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    tokens.insert(_place(tokens, draw), draw.choice(_CHARACTERS))


def _nest(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    place, depth = _place(tokens, draw, r"\w"), draw.choice((2, 20, 90, 500, 5000))
    before, after = draw.choice((("(", ")"), ("[", "]"), ("-", ""), ("T.exp(", ")"), ("x[", "]"), ("not ", "")))
    tokens[place] = before * depth + tokens[place] + after * depth


def _chain(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    place, length = _place(tokens, draw, r"\w"), draw.choice((2, 20, 90, 500, 5000))
    tokens[place] += (draw.choice((" + ", " * ", " < ", " and ", ", ", ".")) + tokens[place]) * length


def _long(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    tokens.insert(_place(tokens, draw), draw.choice(("a", " ", "9", "#", "\n", "\\\n")) * draw.choice((1000, 100_000)))


def _line(tokens: list[str], draw: random.Random, scripts: Sequence[str]) -> None:
    """A hostile line, or one of another program, indented as the line before which it is put."""
    lines = "".join(tokens).split("\n")
    place = draw.randrange(len(lines))
    indent = re.match(r"\s*", lines[place])
    assert indent is not None
    text = draw.choice((draw.choice(_LINES), draw.choice(draw.choice(scripts).split("\n")).strip()))
    lines.insert(place, indent[0] + text)
    tokens[:] = _TOKEN.findall("\n".join(lines))


def _lines_moved(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    lines = "".join(tokens).split("\n")
    line = lines.pop(draw.randrange(len(lines)))
    lines.insert(draw.randrange(len(lines) + 1), draw.choice((line, "    " + line, line[4:])))
    tokens[:] = _TOKEN.findall("\n".join(lines))


def _lines_gone(tokens: list[str], draw: random.Random, _: Sequence[str]) -> None:
    lines = "".join(tokens).split("\n")
    place = draw.randrange(len(lines))
    del lines[place : place + draw.choice((1, 1, 1, 3, 100))]
    tokens[:] = _TOKEN.findall("\n".join(lines))


def _spliced(tokens: list[str], draw: random.Random, scripts: Sequence[str]) -> None:
    """The head of a program with the tail of another."""
    other = _TOKEN.findall(draw.choice(scripts))
    tokens[draw.randrange(len(tokens) + 1) :] = other[draw.randrange(len(other)) :]


_EDITS: tuple[Edit, ...] = (
    *(_number, _dtype, _name, _other_name, _operator, _line) * 2,
    *(_swap, _repeat, _delete, _string, _look_alike, _character, _nest, _chain, _long, _lines_moved, _lines_gone),
    _spliced,
)
