"""A product with a weight that has a scale for each block of the depth: a sum for each block, and their sum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
from tvm import tirx

from loopwright.codegen.cpu import nibble_dots
from loopwright.codegen.graph.blocks import SMALL, most
from loopwright.codegen.graph.packed import PANEL
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var, variables
from loopwright.codegen.rules.analysis.steps import largest_divisor

GROUP = 4
"""Neighbours in depth that intrinsics multiply at once, from one lane of a vector."""


_AT_ONCE = 8


@dataclass(frozen=True)
class BlockSums:
    """The sum of each block, and the sum of the scaled blocks.

    ``numbers`` is what decodes the weight into integers, if a block of its own does. ``decoding`` is the block that
    reads the weight. ``weight_index`` is the position of the weight among the buffers that ``decoding`` reads,
    ``column`` that of the columns among the weight's axes.
    """

    numbers: Block | None
    products: Block
    total: Block
    load: Any
    weight_index: int
    column: int

    @property
    def decoding(self) -> Block:
        return self.numbers or self.products

    @property
    def rows(self) -> int:
        return self.total.spatial[-2][1]

    @property
    def columns(self) -> int:
        return self.total.spatial[-1][1]

    @property
    def size(self) -> int:
        """The elements of a block."""
        return self.products.reduced[0][1]

    @property
    def groups(self) -> int:
        """The groups of a block that are decoded at a time: as many vectors for each lane are in registers."""
        return largest_divisor(self.size // GROUP, _AT_ONCE)

    @cached_property
    def per_byte(self) -> int | None:
        """How many neighbours along the depth are in a byte of the weight, whose bytes are in order; or None."""
        if self.numbers is None or self.column == len(self.load.indices) - 1:
            return None
        if int(self.load.source.shape[-1]) % GROUP:
            return None
        _, (t, _), _ = self.numbers.spatial
        analyzer, index = tvm.sym.Analyzer(), self.load.indices[-1]
        for per_byte in (1, 2, 4):
            place = t if per_byte == 1 else tirx.floordiv(t, tirx.IntImm("int64", per_byte))
            if not any(each.same_as(t) for each in variables(analyzer.simplify(index - place))):
                return per_byte
        return None

    @cached_property
    def zero(self) -> int | None:
        """What is subtracted from numbers that are multiplied in float32; None if it is no small whole number."""
        if self.numbers is None or self.products.dtype != "float32":
            return None
        factor = next(
            (each for each in (self.products.term.a, self.products.term.b) if isinstance(each, tirx.Sub)), None
        )
        zero = 0.0 if factor is None else float(factor.b.value) if isinstance(factor.b, tirx.FloatImm) else -1.0
        return int(zero) if zero.is_integer() and 0 <= zero <= SMALL else None

    def is_tile(self, width: int) -> bool:
        """Return whether the columns are a whole number of tiles of a width, each a whole number of panels of scales.

        TVM does not see that a vector is a part of a panel.
        """
        return self.columns % width == 0 and (width % PANEL == 0 or self.columns % PANEL > 0)

    def has_groups(self, lanes: int) -> bool:
        """Return whether vectors of bytes have groups of neighbours for each of as many columns."""
        per_byte = self.per_byte
        if per_byte is None or self.columns % lanes or self.size % (per_byte * GROUP):
            return False
        return self.groups > 1 and self.groups % per_byte == 0

    def is_looked_up(self, lanes: int) -> bool:
        """Return whether numbers of 4 bits become float32 by looking them up in a vector."""
        return (
            lanes == nibble_dots.LANES
            and self.zero is not None
            and self.numbers is not None
            and most(self.numbers.store.value) <= SMALL
            and self.has_groups(lanes)
        )

    @staticmethod
    def required(program: AnalysedProgram) -> BlockSums:
        """Return the sums of a function that is known to be such a product."""
        sums = BlockSums.of(program)
        assert sums is not None, "the rule has no knobs for this function"
        return sums

    @staticmethod
    def of(program: AnalysedProgram) -> BlockSums | None:
        sums = [block for block in program.reductions if block.operation == "sum" and len(block.reduced) == 1]
        if program.weight is None or len(program.outputs) != 1 or len(sums) != len(program.reductions):
            return None
        readers = [block for block in program.blocks if block.reads(program.weight)]
        if len(readers) != 1:
            return None
        [decoding] = readers
        numbers = None if decoding.is_reduction else decoding
        products = [decoding] if numbers is None else [each for each in sums if each.reads(numbers.store.buffer)]
        if len(products) != 1 or len(products[0].spatial) < 3:
            return None
        [product] = products
        if numbers is not None and not (len(product.spatial) == len(numbers.spatial) == 3):
            return None
        totals = [block for block in sums if block.reads(product.store.buffer)]
        if len(totals) != 1 or len(totals[0].spatial) != len(product.spatial) - 1:
            return None
        if len(sums) > (2 if numbers is None else 3):
            return None
        load = next(load for load in decoding.loads if load.source.same_as(program.weight))
        places = [n for n, index in enumerate(load.indices) if is_var(index, decoding.spatial[-1][0])]
        sources = [region.source for region in decoding.block.reads if not region.source.same_as(decoding.store.buffer)]
        index = next(n for n, source in enumerate(sources) if source.same_as(program.weight))
        return BlockSums(numbers, product, totals[0], load, index, places[0]) if places else None
