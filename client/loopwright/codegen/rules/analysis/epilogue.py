"""Elementwise work after a reduction."""

from __future__ import annotations

from loopwright.codegen.rules.analysis.program import AnalysedProgram, is_var


def is_plain(program: AnalysedProgram) -> bool:
    """Return whether all blocks write at their axes, in order, and read what others wrote at the same indices."""
    for block in program.blocks:
        axes = [axis for axis, _ in block.spatial]
        accesses = [block.store.indices]
        accesses += [load.indices for load in block.loads if program.producer(load.source) is not None]
        for indices in accesses:
            if len(indices) != len(axes) or not all(map(is_var, indices, axes)):
                return False
    return True
