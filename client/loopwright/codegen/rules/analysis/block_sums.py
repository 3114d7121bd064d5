"""A product with a weight that has a scale for each block of the depth: a sum for each block, and their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var


@dataclass(frozen=True)
class BlockSums:
    """The sum of each block, and the sum of the scaled blocks.

    ``numbers`` is what decodes the weight, if a block of its own does: then its sums are of integers. ``decoding`` is
    the block that reads the weight. ``weight_index`` is the position of the weight among the buffers that ``decoding``
    reads, ``column`` that of the columns among the weight's axes.
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
