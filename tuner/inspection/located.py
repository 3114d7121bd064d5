"""A scheduled program whose statements have the lines of its script as locations, which LLVM carries to assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import SourceName, Span

from loopwright.codegen.functions import prim_funcs

_MARK = "located statement "
_MARKED = re.compile(rf"\s*# {_MARK}(\d+)$")
_FILE = "program"
_INIT = "_init"
"""What schedules call the block that sets the first values of a reduction; here also where it is a part of another."""


@dataclass(frozen=True, slots=True)
class Located:
    """A module and its script, whose lines count from 1.

    ``blocks`` has the name of the block of each line with a store or a call, and ``calls`` how often a call of the
    function reaches it.
    """

    module: tvm.IRModule
    script: str
    blocks: dict[int, str]
    calls: dict[int, int]


def located(mod: tvm.IRModule) -> Located:
    """Return a module of scheduled functions with the line of each store, and of each call, as its location."""
    places: dict[tirx.Stmt, tuple[str, int]] = {}
    for _, func in prim_funcs(mod):
        for statement, block, reached in _statements(func.body, "", 1):
            places.setdefault(statement, (block, reached))
    numbers = {statement: number for number, statement in enumerate(places)}
    marks = {statement: f"{_MARK}{number}" for statement, number in numbers.items()}
    lines_of: dict[int, int] = {}
    script = []
    for line, text in enumerate(mod.script(obj_to_annotate=marks).splitlines(), 1):
        if found := _MARKED.search(text):
            lines_of.setdefault(int(found[1]), line)
        script.append(_MARKED.sub("", text))

    def with_line(statement: tirx.Stmt) -> tirx.Stmt:
        line = lines_of.get(numbers.get(statement, -1))
        if line is None:
            return statement
        span = Span(SourceName(_FILE), line, line, 1, 1)
        if isinstance(statement, tirx.BufferStore):
            return tirx.BufferStore(statement.buffer, statement.value, statement.indices, span=span)
        return tirx.Evaluate(statement.value, span)

    result = mod.clone()
    for var, func in prim_funcs(mod):
        kinds = [(tirx.BufferStore, with_line), (tirx.Evaluate, with_line)]
        result.update_func(var, func.with_body(tvm_ffi.structural_map(func.body, kinds, order="post")))
    stores = {lines_of[number]: places[each] for each, number in numbers.items() if number in lines_of}
    return Located(
        result,
        "\n".join(script),
        {line: block for line, (block, _) in stores.items()},
        {line: reached for line, (_, reached) in stores.items()},
    )


def sources(program: Located, unscheduled: Located) -> list[int | None]:
    """Return for each line of a scheduled program the line of the unscheduled one that it computes, if it has one.

    Schedules keep the names of blocks, and make new names of them or of the buffers that a block writes: the copy of
    ``T_matmul`` is ``T_matmul_global``, and its first values are set by ``T_matmul_init``.
    """
    first: dict[str, int] = {}
    for line, block in sorted(unscheduled.blocks.items()):
        first.setdefault(block, line)
    of_line = {line: first.get(_origin(block, first)) for line, block in program.blocks.items()}
    return [of_line.get(line) for line in range(1, len(program.script.splitlines()) + 1)]


def _origin(block: str, known: dict[str, int]) -> str:
    while block and block not in known:
        block = block.rpartition("_")[0]
    return block


def _statements(body: tirx.Stmt, block: str, reached: int) -> Iterator[tuple[tirx.Stmt, str, int]]:
    """Yield the stores and calls of a statement, each with its block and how often it is reached."""
    match body:
        case tirx.BufferStore() | tirx.Evaluate():
            yield body, block, reached
        case tirx.For():
            extent = int(body.extent) if isinstance(body.extent, tvm.ir.prim.IntImm) else 1
            yield from _statements(body.body, block, reached * extent)
        case tirx.SeqStmt():
            for each in body.seq:
                yield from _statements(each, block, reached)
        case tvm.s_tir.SBlockRealize():
            inner = body.block
            if inner.init is not None:
                yield from _statements(inner.init, f"{inner.name_hint}{_INIT}", 1)
            yield from _statements(inner.body, str(inner.name_hint), reached)
        case tirx.IfThenElse():
            yield from _statements(body.then_case, block, reached)
            if body.else_case is not None:
                yield from _statements(body.else_case, block, reached)
        case _:
            if (inside := getattr(body, "body", None)) is not None:
                yield from _statements(inside, block, reached)
