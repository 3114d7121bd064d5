"""The decisions of measured traces as a table, and the importance of each decision. Runs in a disposable child.

Columns come from two places: the sampling instructions of a trace, named after the block and the loop that they are
about, and the loops of the program that it makes, where threads and vectors show.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tvm
import tvm_ffi
import xgboost as xgb
from tvm.target import Target

from loopwright.codegen.program.schedule import new_schedule, replay
from loopwright.codegen.rule import RULE
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tuner.inspection.answers import Coverage, DecisionChange, DecisionColumn, DecisionTable, Kind

_VECTORIZED, _PARALLEL, _BOUND = 2, 1, 4
"""`tirx.ForKind`."""
_FEWEST = 8
"""Rows below which a model of them would say nothing."""
_DERIVED = {
    "CacheRead": "copy for",
    "CacheWrite": "cache of",
    "ReIndex": "copy for",
    "RFactor": "parts of",
    "GetProducers": "producer of",
    "GetConsumers": "consumer of",
}
"""What to call blocks that a trace makes or finds."""
_WORDS = {"unroll_explicit": "unroll steps", "unroll_implicit": "unroll steps"}
_PARAMETERS = {"max_depth": 4, "eta": 0.2, "nthread": 1, "seed": 0, "tree_method": "exact", "verbosity": 0}
_ROUNDS = 60

Cell = tuple[str, Kind, float | str, int | None]
"""A column's name and kind (tile, categorical, location, parallel, vector), the value in it, and how many values a
sampling instruction may give it; None if none samples it, or nobody counts them."""


def table(module_json: str, traces: list[str], target_json: str, latencies: list[float]) -> Iterator[DecisionTable]:
    """Yield the decisions of a workload's traces, with their latencies in seconds.

    Columns in which all rows agree are left out.
    """
    mod, target = module_from_json(module_json), target_from(target_json)
    loops = _loops(mod)
    drawn = [list(_cells(mod, loops, json.loads(trace), target)) for trace in traces]
    found = [{name: (kind, value) for name, kind, value, _ in cells} for cells in drawn]
    names = list(dict.fromkeys(name for row in found for name in row))
    columns, values = [], []
    for name in names:
        cells = [row.get(name, (None, None)) for row in found]
        if len(set(cells)) == 1 and len(cells) > 1:
            continue
        kind = next(kind for kind, _ in cells if kind is not None)
        numbers, categories = _numbers([value for _, value in cells])
        is_size = kind != "categorical" and categories is None
        columns.append(DecisionColumn(name, kind, is_size, categories, None))
        values.append(numbers)
    weighed = [
        replace(column, importance=importance)
        for column, importance in zip(columns, _importances(values, latencies), strict=True)
    ]
    rows = [list(row) for row in zip(*values, strict=True)] or [[] for _ in traces]
    yield DecisionTable(weighed, rows, _coverage(drawn))


def _coverage(traces: list[list[Cell]]) -> list[Coverage]:
    tried: dict[str, set[float | str]] = {}
    possible: dict[str, int] = {}
    for name, _, value, values in itertools.chain.from_iterable(traces):
        if values is not None:
            tried.setdefault(name, set()).add(value)
            possible[name] = max(possible.get(name, 0), values)
    return [Coverage(name, len(values), possible[name]) for name, values in tried.items() if possible[name] > 1]


def _divisors(extent: int) -> int:
    return sum(extent % factor == 0 for factor in range(1, extent + 1))


def changes(mod: tvm.IRModule, before_json: str, after_json: str) -> tuple[DecisionChange, ...]:
    """Return the decisions in which two traces of a workload differ."""
    loops = _loops(mod)
    before, after = (
        {name: _text(value) for name, _, value, _ in _sampled(json.loads(each), loops)}
        for each in (before_json, after_json)
    )
    return tuple(
        DecisionChange(name, before.get(name, ""), after.get(name, ""))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    )


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _loops(mod: tvm.IRModule) -> dict[str, list[str]]:
    """For each block of the unscheduled function, its loops' names from the outermost."""
    schedule = new_schedule(mod)
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(mod["main"].body, (tvm.s_tir.SBlock, blocks.append), order="post")
    names = [str(block.name_hint) for block in blocks if block.iter_vars]
    return {
        name: [str(schedule.get(loop).loop_var.name) for loop in schedule.get_loops(schedule.get_sblock(name))]
        for name in names
    }


def _cells(mod: tvm.IRModule, loops: dict[str, list[str]], trace: list[Any], target: Target) -> Iterator[Cell]:
    yield from _sampled(trace, loops)
    yield from _scheduled(replay(mod, trace, target).mod["main"])


def _sampled(trace: list[Any], loops: dict[str, list[str]]) -> Iterator[Cell]:
    """Return what the trace's sampling instructions decided."""
    instructions, decided = trace
    decisions = dict(decided)
    named: dict[str, str] = {}
    used = {
        argument: (kind, inputs, attributes)
        for kind, inputs, attributes, _ in instructions
        for argument in inputs
        if isinstance(argument, str)
    }
    seen: dict[str, int] = {}

    def once(name: str) -> str:
        seen[name] = seen.get(name, 0) + 1
        return name if seen[name] == 1 else f"{name} ({seen[name]})"

    for position, (kind, inputs, attributes, outputs) in enumerate(instructions):
        decision = decisions.get(position)
        if kind == "GetSBlock":
            named[outputs[0]] = attributes[0]
        elif kind == "GetLoops":
            block = named.get(inputs[0], "")
            known = loops.get(block, [])
            for number, loop in enumerate(outputs):
                named[loop] = f"{block}: tile {known[number] if len(known) == len(outputs) else f'loop {number + 1}'}"
        elif kind == "Annotate" and attributes[0].startswith(RULE):
            yield "rule", "categorical", attributes[0].removeprefix(RULE), None
        elif kind in _DERIVED:
            named |= dict.fromkeys(outputs, f"{_DERIVED[kind]} {named.get(inputs[0], 'block').partition(':')[0]}")
        elif decision is None:
            continue
        elif kind in ("SamplePerfectTile", "SamplePartitionedTile"):
            name = once(named.get(inputs[0], "tile"))
            # A partitioned tile need not divide the loop: nobody counts its values.
            values = _divisors(math.prod(decision)) if kind == "SamplePerfectTile" else None
            for number, factor in enumerate(decision):
                yield f"{name}[{number}]", "tile", float(factor), values
        elif kind == "SampleCategorical":
            value = attributes[0][decision]
            name, shown = once(_purpose(used.get(outputs[0]), named)), value if _is_number(value) else str(value)
            yield name, "categorical", shown, len(attributes[0])
        elif kind == "SampleComputeLocation":
            place = {-2: "inlined", -1: "own loops"}.get(decision, f"at loop {decision + 1}")
            yield once(f"{named.get(inputs[0], 'block')}: place"), "location", place, None


def _purpose(use: tuple[str, list[Any], list[Any]] | None, named: dict[str, str]) -> str:
    """Return what a categorical choice is used for."""
    if use is None:
        return "choice"
    kind, inputs, attributes = use
    about = named.get(inputs[0], "").partition(": tile ")
    where = "" if about[0] in ("", "root") else f"{about[0]}: "
    if kind == "Annotate":
        word = str(attributes[0]).rpartition(".")[2]
        return where + _WORDS.get(word, word.replace("_", " "))
    return f"{where}{kind.lower()} {about[2]}".strip()


def _scheduled(func: tvm.tirx.PrimFunc) -> Iterator[Cell]:
    """Extents of the loops that run on threads or in vectors, by the block in them."""
    loops: list[tvm.tirx.For] = []
    tvm_ffi.structural_walk(func.body, (tvm.tirx.For, loops.append), order="pre")
    informative = set()
    for loop in loops:
        if int(loop.kind) not in (_PARALLEL, _VECTORIZED, _BOUND) or not isinstance(loop.extent, tvm.tirx.IntImm):
            continue
        blocks: list[tvm.s_tir.SBlock] = []
        tvm_ffi.structural_walk(loop.body, (tvm.s_tir.SBlock, blocks.append), order="post")
        names = [str(block.name_hint) for block in blocks if not str(block.name_hint).endswith("_init")]
        # A reduction that was taken apart computes in its update.
        names = [name.removesuffix("_update") for name in names]
        if not names:
            continue
        kind: Kind = "vector" if int(loop.kind) == _VECTORIZED else "parallel"
        word = str(loop.thread_binding.thread_tag) if int(loop.kind) == _BOUND else kind
        name = f"{names[-1]}: {word}"
        if name not in informative:
            informative.add(name)
            yield name, kind, float(int(loop.extent)), None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(values: Sequence[float | str | None]) -> tuple[list[float | None], list[str] | None]:
    """Values as numbers; names as indices into the categories, which are then given."""
    if not any(isinstance(value, str) for value in values):
        return [None if value is None else float(value) for value in values], None
    # "at loop 9" before "at loop 10".
    categories = sorted({str(value) for value in values if value is not None}, key=lambda name: (len(name), name))
    return [None if value is None else float(categories.index(str(value))) for value in values], categories


def _importances(columns: list[list[float | None]], latencies: list[float]) -> list[float | None]:
    """Each column's share of the gain of a model of the logarithm of latency; None where there is too little."""
    if not columns or len(latencies) < _FEWEST:
        return [None] * len(columns)
    rows = np.array(columns, dtype=np.float64).T
    booster = xgb.train(_PARAMETERS, xgb.DMatrix(rows, label=np.log(latencies)), num_boost_round=_ROUNDS)
    gains = booster.get_score(importance_type="total_gain")
    total = sum(gains.values())
    if not total:
        return [None] * len(columns)
    return [float(gains.get(f"f{number}", 0.0) / total) for number in range(len(columns))]
