"""Loopwright's own rules for CPUs and for GPUs, one a file.

Each adds a sketch to the built-in space, beside those of TVM.

A sketch is an open trace whose instructions only draw values for a rule's knobs and write them down as annotations.
When a trace is finished, `Sketches.finish` takes the annotations away and the rule schedules the function by the
values, with concrete instructions: a finished trace needs TVM and the intrinsics of `loopwright.codegen`, and no rule.
"""

from __future__ import annotations

from tuner.space.rules.analysis.rule import Rule
from tuner.space.rules.cpu.attention import Attention
from tuner.space.rules.cpu.block_dots import BlockDots
from tuner.space.rules.cpu.block_scaled import BlockScaled
from tuner.space.rules.cpu.column_reduce import ColumnReduce
from tuner.space.rules.cpu.column_sum import ColumnSum
from tuner.space.rules.cpu.conv_direct import ConvDirect
from tuner.space.rules.cpu.conv_maddwd import ConvMaddwd
from tuner.space.rules.cpu.elementwise import Elementwise
from tuner.space.rules.cpu.gemv import Gemv
from tuner.space.rules.cpu.maddwd import Maddwd
from tuner.space.rules.cpu.register_tile import RegisterTile
from tuner.space.rules.cpu.row_reduce import RowReduce
from tuner.space.rules.cpu.vnni import Vnni
from tuner.space.rules.cpu.winograd import Winograd
from tuner.space.rules.gpu.elementwise import GpuElementwise
from tuner.space.rules.gpu.gemv import GpuGemv
from tuner.space.rules.gpu.product import GpuProduct
from tuner.space.rules.gpu.row_reduce import GpuRowReduce

CPU_RULES: tuple[Rule, ...] = (
    Elementwise(),
    RowReduce(),
    RegisterTile(),
    Gemv(),
    Vnni(),
    Maddwd(),
    BlockScaled(),
    BlockDots(),
    Attention(),
    ConvDirect(),
    ConvMaddwd(),
    ColumnReduce(),
    ColumnSum(),
    Winograd(),
)

SHARING_RULES: tuple[Rule, ...] = (RegisterTile(), Vnni(), Maddwd(), BlockScaled())
"""Those of `CPU_RULES` that pack a weight that several programs have in the same panels, whatever the program."""

GPU_RULES: tuple[Rule, ...] = ()
"""Those that programs were timed of on a GPU, and that made some faster."""

EXPERIMENTAL_GPU_RULES: tuple[Rule, ...] = (GpuElementwise(), GpuRowReduce(), GpuGemv(), GpuProduct())
"""Those of which no program has been timed on a GPU (docs/benchmarks/gpu.md). A search draws their programs like any
others, and measures their seeds only if `SearchConfig.experimental` says so."""
