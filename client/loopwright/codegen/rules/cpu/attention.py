"""Attention in one function: for a block of rows, the scores, their softmax and the product with the values.

The scores of a block stay in the cache between the two products, which are scheduled as tiles in registers. A task is
a head, or some of its rows if threads share the work better then; it packs the head's keys once. (Rabe and Staats,
arXiv 2112.05682, but all keys of a head at a time.) Tasks have equally many rows, of which the last ones may be those
that `loopwright.codegen.graph.attention_program` pads the head with: they are computed and not stored. With few rows,
as in decoding, packing is more work than the product: then the keys are read as they lie. Blocks of keys that are
hidden from all queries (`loopwright.codegen.graph.seen_keys`) are skipped by each of the stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from loopwright.codegen.cpu import row_dots, row_reduction, tile_transpose
from loopwright.codegen.cpu.row_dots import RowDots
from loopwright.codegen.cpu.row_reduction import RowReduction
from loopwright.codegen.program.flags import RUNS_IF
from loopwright.codegen.rules.analysis.convolution import coefficient
from loopwright.codegen.rules.analysis.product_tile import registers
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var, variables
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import fuse, inline, parallelize, separate_partial_tiles, vectorize

_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
_VECTORS = (1, 2, 3, 4)
_BLOCKS = (16, 24, 32, 48, 64, 96, 128)
"""Rows of the scores that are computed at a time, if not all are."""
_TASKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
"""Tasks of a head."""
_LEAST_ROWS = 8
"""Rows of a task, if a head has several."""
_TASK_OVERHEAD = 20
"""Rows that take as long as what each task does for itself, as packing the keys. Of two threads of AMD Zen 4 with
AVX-512, it was 16 to 22 with 77 keys of 80, 197 of 64 and 300 of 64."""
_PACKED, _IN_PLACE = 0, 1
"""Whether a task packs the keys of its head, or reads them as they lie, a vector of keys for all rows at a time."""
_FEW_ROWS = 8
"""Rows up to which keys are first tried in place. Not tuned."""
_SEEDS = 4
_SUMS = 8
"""Vectors of sums with which no addition waits for another: two units, and four cycles each (AMD Zen 4, Intel since
Skylake)."""
_LARGE_MASK = 2**15
"""Elements of a mask from which threads share its copy. Not tuned."""


class Attention:
    name = "attention"
    version = 4

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        parts = _Parts.of(program)
        if parts is None or parts.columns % machine.lanes or parts.width % machine.lanes:
            return ()
        rows = tuple(rows for rows in _ROWS if rows <= parts.rows)
        return (
            Knob("keys", (_PACKED, _IN_PLACE) if parts.can_read_in_place(machine) else (_PACKED,)),
            Knob("tasks", parts.task_counts),
            Knob("block", (0, *(block for block in _BLOCKS if block < parts.rows and parts.has_room(1, block)))),
            Knob("score_rows", rows),
            Knob("score_vectors", _dividing(parts.skipped_columns, machine)),
            Knob("value_rows", rows),
            Knob("value_vectors", _dividing(parts.width, machine)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        parts = _Parts.required(program)
        in_place = parts.rows <= _FEW_ROWS and parts.can_read_in_place(machine)
        tasks = parts.best_tasks(machine.threads)
        rows = parts.task_rows(tasks)
        scores = _tiles(rows, parts.skipped_columns, machine)
        values = _tiles(rows, parts.width, machine)
        for score, value in list(zip(scores, values, strict=False))[:_SEEDS]:
            yield {
                "keys": _IN_PLACE if in_place else _PACKED,
                "tasks": tasks,
                "block": 0,
                "score_rows": score[0],
                "score_vectors": score[1],
                "value_rows": value[0],
                "value_vectors": value[1],
            }

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        _Steps(schedule, program, _Parts.required(program), machine).apply(values)


@dataclass(frozen=True)
class _Parts:
    """The blocks of attention, in order, and the extents of a head."""

    keys: Block | None
    """What copies the keys, if a block does."""
    queries: Block | None
    """What pads the rows of the queries, if there is more than the result has."""
    scores: Block
    weights: Block | None
    """What scales and masks the scores, if they are."""
    maximum: Block
    exponentials: Block
    total: Block
    probabilities: Block | None
    """What rounds the exponentials over their sums, if the model quantises these."""
    values: Block
    last: Block
    rows: int
    """The rows of a head in the result."""

    @property
    def padded_rows(self) -> int:
        return self.scores.spatial[-2][1]

    @property
    def task_counts(self) -> tuple[int, ...]:
        """The numbers of tasks of equal size into which a head may be divided."""
        most = max(1, self.rows // _LEAST_ROWS)
        return tuple(tasks for tasks in _TASKS if tasks <= most and self.has_room(tasks))

    def best_tasks(self, threads: int) -> int:
        """Return the number of a head's tasks with which the threads finish early and together."""
        heads = math.prod(extent for _, extent in self.scores.spatial[:-2])

        def seconds(tasks: int) -> float:
            return math.ceil(heads * tasks / threads) * (self.task_rows(tasks) + _TASK_OVERHEAD)

        return min(self.task_counts, key=seconds)

    def task_rows(self, tasks: int, block: int = 1) -> int:
        """Return the rows of each of a head's tasks, whole blocks."""
        return math.ceil(self.rows / (tasks * block)) * block

    def has_room(self, tasks: int, block: int = 1) -> bool:
        """Return whether the padding has the rows that tasks compute beyond those of the result, and each has one."""
        rows = self.task_rows(tasks, block)
        return (tasks - 1) * rows < self.rows and tasks * rows <= self.padded_rows

    @property
    def columns(self) -> int:
        return self.scores.spatial[-1][1]

    @property
    def skipped_columns(self) -> int:
        """The columns that are skipped together: all, if there are no flags, which are computed always."""
        return self.columns if self.seen is None else self.columns // int(self.seen.shape[0])

    @property
    def width(self) -> int:
        return self.values.spatial[-1][1]

    masks: tuple[Block, ...]
    """What copies masks into rows that are a whole number of vectors."""
    seen: Any
    """The flags of the blocks of keys that are seen, if the function has any."""

    @property
    def depth(self) -> int:
        return self.scores.reduced[0][1]

    def can_read_in_place(self, machine: MachineLimits) -> bool:
        """Return whether rows of keys lie in memory as they are multiplied, and are whole numbers of vectors."""
        if self.keys is None or self.depth % machine.lanes or self.keys.dtype != "float32":
            return False
        (depth, _), (column, _) = self.keys.spatial[-2:]
        key = self.keys.store.value
        if not isinstance(key, tvm.ir.TensorLoad) or int(key.source.shape[-1]) != self.depth:
            return False
        return is_var(key.indices[-1], depth) and is_var(key.indices[-2], column)

    def axes_across(self, machine: MachineLimits) -> int | None:
        """Return how many axes lie between those of the columns and of the depth in what the keys are copied from.

        None if rows are not contiguous there, or no whole number of vectors: then tiles of them cannot be turned.
        """
        key = None if self.keys is None else self.keys.store.value
        if not isinstance(key, tvm.ir.TensorLoad) or self.depth % machine.lanes or str(key.ty) != "float32":
            return None
        assert self.keys is not None, "the value is that of its block"
        (depth, _), (column, _) = self.keys.spatial[-2:]
        *others, last = key.indices
        linear = tvm.sym.detect_linear_equation(last, [depth])
        is_contiguous = len(linear) == 2 and isinstance(linear[0], tirx.IntImm) and int(linear[0]) == 1
        moves = [n for n, index in enumerate(others) if any(each.same_as(column) for each in variables(index))]
        is_of_depth = any(each.same_as(depth) for index in others for each in variables(index))
        if not is_contiguous or is_of_depth or len(moves) != 1 or not is_var(others[moves[0]], column):
            return None
        return len(others) - 1 - moves[0]

    @staticmethod
    def required(program: AnalysedProgram) -> _Parts:
        """Return the parts of a function that is known to be attention."""
        parts = _Parts.of(program)
        assert parts is not None, "the rule has no knobs for this function"
        return parts

    @staticmethod
    def of(program: AnalysedProgram) -> _Parts | None:
        """Return the parts of a function that is attention on float32, or None."""
        reductions = program.reductions
        products = [block for block in reductions if _is_product(block)]
        maxima = [block for block in reductions if isinstance(block.store.value, tirx.Max)]
        if (len(reductions), len(products), len(maxima), len(program.outputs)) != (4, 2, 1, 1):
            return None
        if any(len(block.reduced) != 1 or block.dtype != "float32" for block in reductions):
            return None
        (scores, values), [maximum] = products, maxima
        [total] = [block for block in reductions if block not in (scores, values, maximum)]
        last = program.block(program.outputs[0])
        weights = program.producer(maximum.loads[0].source)
        exponentials = program.producer(total.loads[0].source)
        if weights is None or exponentials is None or last.is_reduction:
            return None
        if not (weights is scores or weights.reads(scores.store.buffer)):
            return None
        probabilities = None
        if not values.reads(exponentials.store.buffer):
            probabilities = program.producer(values.loads[0].source)
            if probabilities is None or not probabilities.reads(exponentials.store.buffer):
                return None
        if not _follows(program, last, values):
            return None
        if len(scores.spatial) != len(values.spatial) or len(scores.spatial) < 2:
            return None
        read = [load for load in scores.loads if any(is_var(i, scores.spatial[-1][0]) for i in load.indices)]
        if len(read) != 1 or coefficient(values.loads[-1].indices[-1], values.spatial[-1][0]) != 1:
            return None
        weighted = None if weights is scores else weights
        producers = [program.producer(load.source) for load in (weights.loads if weighted else ())]
        masks = {block.name: block for block in producers if block is not None and block not in (scores, weights)}
        keys = program.producer(read[0].source)
        results = [
            extent
            for block in program.consumers(values)
            for load in block.loads
            for axis, extent in block.spatial
            if load.source.same_as(values.store.buffer) and is_var(load.indices[-2], axis)
        ]
        rows = results[0] if results else scores.spatial[-2][1]
        queries = [program.producer(load.source) for load in scores.loads if not load.same_as(read[0])]
        padding = queries[0] if rows < scores.spatial[-2][1] else None
        stages = (keys, padding, scores, weighted, maximum, exponentials, total, probabilities, values, last, rows)
        flags = [load.source for load in (weighted.loads if weighted else ()) if _is_flag(program, load)]
        return _Parts(*stages, tuple(masks.values()), flags[0] if flags else None)


class _Steps:
    def __init__(self, schedule: Schedule, program: AnalysedProgram, parts: _Parts, machine: MachineLimits) -> None:
        self._schedule = schedule
        self._program = program
        self._parts = parts
        self._machine = machine

    def apply(self, values: Knobs) -> None:
        sch, parts, lanes = self._schedule, self._parts, self._machine.lanes
        if not parts.has_room(values["tasks"], values["block"] or 1):
            raise RuleRefused("a head has no rows for so many tasks of whole blocks")
        task_rows = parts.task_rows(values["tasks"], values["block"] or 1)
        rows = values["block"] or task_rows
        for kind in ("score", "value"):
            tile_rows, vectors = values[f"{kind}_rows"], values[f"{kind}_vectors"]
            if registers(tile_rows, vectors) > self._machine.registers:
                raise RuleRefused("the tile has more vectors than the processor has registers")
        before, after = ([] if each is None else [each.name] for each in (parts.weights, parts.probabilities))
        stages = [*after, parts.exponentials.name, *before]
        kept_keys = parts.keys if values["keys"] == _PACKED else None
        padding = parts.queries if values["tasks"] * task_rows > parts.rows else None
        copies = [each.name for each in (kept_keys, padding, *parts.masks) if each is not None]
        inline(sch, self._program, keep=frozenset([*stages, *copies]))
        width = values["score_vectors"] * lanes
        keys = None if values["keys"] == _IN_PLACE else self._packed_keys(width)
        task, place, inner = self._outer_loops(task_rows, rows)
        # What uses a result comes before what computes it.
        order = (parts.values.name, *after, parts.total.name, parts.exponentials.name, parts.maximum.name, *before)
        padded = [] if padding is None else [padding.name]
        for name in (*order, parts.scores.name, *padded):
            sch.compute_at(sch.get_sblock(name), place, preserve_unit_loops=True)
        if keys is not None:
            sch.compute_at(keys, task)
            depth, column = sch.get_loops(keys)[-2:]
            self._skipping(column, before=depth)
            across = parts.axes_across(self._machine)
            if across is not None:
                self._turn(keys, values["score_vectors"], across)
        parallelize(sch, task)
        for mask in parts.masks:
            if math.prod(extent for _, extent in mask.spatial) >= _LARGE_MASK:
                parallelize(sch, fuse(sch, sch.get_loops(sch.get_sblock(mask.name))[:-1]))
        if keys is None:
            self._dots(parts.scores)
        else:
            self._tile(parts.scores, values["score_rows"], width, rows)
        self._tile(parts.values, values["value_rows"], values["value_vectors"] * lanes, rows)
        for reduction, operation in ((parts.maximum, "max"), (parts.total, "sum")):
            self._reduce(reduction, operation)
        for name in stages:
            vectorize(sch, name, self._skipping(sch.get_loops(sch.get_sblock(name))[-1])[1], lanes)
        for name in padded:
            vectorize(sch, name, sch.get_loops(sch.get_sblock(name))[-1], lanes)
        vectorize(sch, parts.last.name, inner, lanes)

    def _packed_keys(self, width: int) -> Any:
        """Copy the keys into panels ``[…, columns / width, depth, width]``; return the copying block."""
        sch, part = self._schedule, self._parts.scores
        column, depth = part.spatial[-1][0], part.reduced[0][0]
        key = next(load for load in part.loads if any(is_var(index, column) for index in load.indices))
        if self._parts.keys is not None:
            packed = sch.get_sblock(self._parts.keys.name)
        else:
            sources = [region.source for region in part.block.reads if not region.source.same_as(part.store.buffer)]
            place = next(n for n, source in enumerate(sources) if source.same_as(key.source))
            packed = sch.cache_read(sch.get_sblock(part.name), place, "global")
        across = next(n for n, index in enumerate(key.indices) if is_var(index, column))
        down = next(n for n, index in enumerate(key.indices) if is_var(index, depth))
        others = [n for n in range(len(key.indices)) if n not in (across, down)]

        def panels(*i: Any) -> list[Any]:
            return [*(i[n] for n in others), i[across] // width, i[down], i[across] % width]

        sch.transform_layout(packed, ("write", 0), panels)
        return packed

    def _turn(self, keys: Any, vectors: int, across: int) -> None:
        """Copy the keys in square tiles, which are turned in registers."""
        sch, lanes = self._schedule, self._machine.lanes
        depth, column = sch.get_loops(keys)[-2:]
        tile, row = sch.split(depth, [None, lanes])
        panel, vector, lane = sch.split(column, [None, vectors, lanes])
        sch.reorder(panel, vector, tile, row, lane)
        name = tile_transpose.intrinsic(lanes, across)
        tile_transpose.register(name)
        sch.tensorize(row, name)

    def _outer_loops(self, task_rows: int, rows: int) -> tuple[Any, Any, Any]:
        """Order the loops of the result: tasks of so many rows, a block of rows, the loop over the values' width."""
        sch, parts = self._schedule, self._parts
        # As it is after inlining: the result may be moved once more on its way out.
        last = Block(parts.last.name, sch.get(sch.get_sblock(parts.last.name)))
        load = next(load for load in last.loads if load.source.name == parts.values.store.buffer.name)
        axes = [axis for axis, _ in last.spatial]
        places = [next(n for n, axis in enumerate(axes) if is_var(index, axis)) for index in load.indices]
        loops = sch.get_loops(sch.get_sblock(parts.last.name))
        *heads, row, inner = [loops[place] for place in places]
        sch.reorder(*heads, row, inner)
        if task_rows != parts.rows:
            part, row = sch.split(row, [None, task_rows])
            heads.append(part)
        task = place = fuse(sch, heads) if heads else sch.add_unit_loop(row)
        if rows != task_rows:
            place, _ = sch.split(row, [None, rows])
        return task, place, inner

    def _skipping(self, loop: Any, before: Any = None) -> tuple[Any, Any]:
        """Skip the iterations of a loop over columns that are those of blocks which are not seen.

        Returns:
            The loop over blocks, which is put before another loop around this one if that is given, and the loop over
            the columns of a block; None and the loop itself if there are no flags.
        """
        sch, seen = self._schedule, self._parts.seen
        if seen is None:
            return None, loop
        blocks, inner = sch.split(loop, [None, self._parts.skipped_columns])
        if before is not None:
            sch.reorder(blocks, before)
        params = [str(param.name) for param in sch.mod["main"].params]
        sch.annotate(blocks, RUNS_IF, params.index(str(seen.name)))
        return blocks, inner

    def _tile(self, part: Block, rows: int, width: int, extent: int) -> None:
        """Keep a tile of a product in registers while the sum runs over it.

        The last tile of the ``extent`` rows may be a part of one.
        """
        sch, lanes = self._schedule, self._machine.lanes
        block = sch.get_sblock(part.name)
        i, j, k = sch.get_loops(block)[-3:]
        is_score = part is self._parts.scores
        # Sums stay in registers while blocks of keys are skipped.
        skipped, k = (None, k) if is_score else self._skipping(k)
        j = self._skipping(j, before=i)[1] if is_score else j
        io, ii = sch.split(i, [None, rows])
        jo, jv, jx = sch.split(j, [None, width // lanes, lanes])
        ko, ki = sch.split(k, [None, math.gcd(int(sch.get(k).extent), 4)])
        summed = [ko] if skipped is None else [skipped, ko]
        sch.reorder(jo, io, *summed, ki, ii, jv, jx)
        if extent % rows:
            separate_partial_tiles(sch, io)
        sch.vectorize(jx)
        for loop in (ki, ii, jv):
            sch.unroll(loop)
        sch.decompose_reduction(block, summed[0])

    def _dots(self, part: Block) -> None:
        """Multiply each vector of keys with all rows, as the keys lie."""
        sch, lanes = self._schedule, self._machine.lanes
        block = sch.get_sblock(part.name)
        i, j, k = sch.get_loops(block)[-3:]
        _, j = self._skipping(j, before=i)
        jo, ji = sch.split(j, [None, lanes])
        sch.reorder(jo, i, ji, k)
        init = sch.decompose_reduction(block, jo)
        vectorize(sch, sch.get(init).name_hint, sch.get_loops(init)[-1], lanes)
        dots = RowDots(lanes, self._parts.depth)
        row_dots.register(dots.name)
        sch.tensorize(ji, dots.name)

    def _reduce(self, part: Block, operation: str) -> None:
        sch = self._schedule
        block = sch.get_sblock(part.name)
        skipped, loop = self._skipping(sch.get_loops(block)[-1])
        sch.decompose_reduction(block, loop if skipped is None else skipped)
        reduction = RowReduction(operation, self._parts.skipped_columns, 4, self._machine.lanes)
        row_reduction.register(reduction.name)
        sch.tensorize(sch.get_loops(sch.get_sblock(f"{part.name}_update"))[-1], reduction.name)


def _is_flag(program: AnalysedProgram, load: Any) -> bool:
    """Return whether what is loaded is a flag of a block of neighbours, an argument."""
    is_row = len(load.indices) == 1 and not isinstance(load.indices[0], tvm.ir.Var)
    return is_row and str(load.source.dtype) == "bool" and program.producer(load.source) is None


def _is_product(block: Block) -> bool:
    """Return whether a block sums products of elements of two buffers."""
    value = block.store.value
    factors = [value.b.a, value.b.b] if isinstance(value, tirx.Add) and isinstance(value.b, tirx.Mul) else []
    loads = [factor for factor in factors if isinstance(factor, tvm.ir.TensorLoad)]
    return len(loads) == 2 and not loads[0].source.same_as(loads[1].source)


def _follows(program: AnalysedProgram, last: Block, values: Block) -> bool:
    """Return whether the last block maps the elements of the values, directly or by blocks that only do so."""
    if last.reads(values.store.buffer):
        return True
    sources = [program.producer(load.source) for load in last.loads]
    return any(b is not None and not b.is_reduction and _follows(program, b, values) for b in sources)


def _dividing(columns: int, machine: MachineLimits) -> tuple[int, ...]:
    """Return the numbers of vectors that a tile may have: the columns are a whole number of tiles."""
    return tuple(vectors for vectors in _VECTORS if columns % (vectors * machine.lanes) == 0)


def _tiles(rows: int, columns: int, machine: MachineLimits) -> list[tuple[int, int]]:
    """Return tiles (rows, vectors) for a product, those that load least for their work and waste least first."""
    scored = [
        (_cost(rows, tile, vectors), tile, vectors)
        for tile in _ROWS
        for vectors in _dividing(columns, machine)
        if tile <= rows and registers(tile, vectors) <= machine.registers
    ]
    return [(tile, vectors) for _, tile, vectors in sorted(scored)]


def _cost(rows: int, tile: int, vectors: int) -> float:
    """Return the time of a product relative to that of its multiply-adds alone."""
    padded = math.ceil(rows / tile) * tile / rows
    loads = (tile + vectors) / (tile * vectors)
    waiting = max(1.0, _SUMS / (tile * vectors))
    return padded * (1 + loads) * waiting
