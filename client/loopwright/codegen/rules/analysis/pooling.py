"""The sum over all pixels of what a function computes, which is the function's second result."""

from __future__ import annotations

from dataclasses import dataclass, replace

from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var


@dataclass(frozen=True)
class Pooling:
    """``image`` is the function without the sum, which ``block`` computes: over lines, then pixels of a line."""

    image: AnalysedProgram
    block: Block

    @staticmethod
    def of(program: AnalysedProgram) -> Pooling | None:
        """Return the sum over the pixels of an image with the channels last; None if the function has none."""
        if len(program.outputs) != 2 or len(program.reductions) < 2:
            return None
        block = program.reductions[-1]
        place = program.blocks.index(block)
        image = replace(program, blocks=program.blocks[:place], outputs=program.outputs[:1])
        load = block.loads[0] if block.operation == "sum" and len(block.loads) == 1 else None
        if load is None or not block.term.same_as(load) or len(block.reduced) != 2:
            return None
        if image.blocks[-1].name != program.outputs[0] or not load.source.same_as(image.blocks[-1].store.buffer):
            return None
        *_, line, pixel, channel = load.indices
        axes = (*(axis for axis, _ in block.reduced), block.spatial[-1][0])
        after = program.blocks[place + 1 :]
        is_last = all(len(each.loads) == 1 and not each.is_reduction for each in after)
        return Pooling(image, block) if is_last and all(map(is_var, (line, pixel, channel), axes)) else None
