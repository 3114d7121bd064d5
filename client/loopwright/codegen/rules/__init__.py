"""Loopwright's own rules for CPUs and for GPUs, one a file.

Each adds a sketch to the built-in space, beside those of TVM.

A sketch is an open trace whose instructions only draw values for a rule's knobs and write them down as annotations.
When a trace is finished, `Sketches.finish` takes the annotations away and the rule schedules the function by the
values, with concrete instructions: a finished trace needs TVM and the intrinsics of `loopwright.codegen`, and no rule.
"""

from __future__ import annotations

from loopwright.codegen.rules.analysis.rule import Rule
from loopwright.codegen.rules.cpu.attention import Attention
from loopwright.codegen.rules.cpu.block_dots import BlockDots
from loopwright.codegen.rules.cpu.block_scaled import BlockScaled
from loopwright.codegen.rules.cpu.column_reduce import ColumnReduce
from loopwright.codegen.rules.cpu.column_stages import ColumnStages
from loopwright.codegen.rules.cpu.column_sum import ColumnSum
from loopwright.codegen.rules.cpu.conv_direct import ConvDirect
from loopwright.codegen.rules.cpu.conv_maddwd import ConvMaddwd
from loopwright.codegen.rules.cpu.conv_vnni import ConvVnni
from loopwright.codegen.rules.cpu.elementwise import Elementwise
from loopwright.codegen.rules.cpu.gemv import Gemv
from loopwright.codegen.rules.cpu.maddwd import Maddwd
from loopwright.codegen.rules.cpu.recurrent import Recurrent
from loopwright.codegen.rules.cpu.register_tile import RegisterTile
from loopwright.codegen.rules.cpu.row_reduce import RowReduce
from loopwright.codegen.rules.cpu.transpose import Transpose
from loopwright.codegen.rules.cpu.vnni import Vnni
from loopwright.codegen.rules.cpu.window_reduce import WindowReduce
from loopwright.codegen.rules.cpu.winograd import Winograd
from loopwright.codegen.rules.gpu.elementwise import GpuElementwise
from loopwright.codegen.rules.gpu.gemv import GpuGemv
from loopwright.codegen.rules.gpu.product import GpuProduct
from loopwright.codegen.rules.gpu.row_reduce import GpuRowReduce

CPU_RULES: tuple[Rule, ...] = (
    Recurrent(),
    Attention(),
    Winograd(),
    BlockScaled(),
    BlockDots(),
    Vnni(),
    Maddwd(),
    ConvVnni(),
    ConvMaddwd(),
    ConvDirect(),
    Gemv(),
    RegisterTile(),
    RowReduce(),
    ColumnStages(),
    WindowReduce(),
    ColumnReduce(),
    ColumnSum(),
    Transpose(),
    Elementwise(),
)
"""The rules for the more special forms first: their seeds are tried in this order. Where two rules apply to a function
of ResNet-18, the first seed of the later one takes 3 to 20 times as long (docs/explanation/prior.md)."""

SHARING_RULES: tuple[Rule, ...] = (RegisterTile(), Vnni(), Maddwd(), BlockScaled(), BlockDots())
"""Those of `CPU_RULES` that pack a weight that several programs have in the same panels, whatever the program."""

GPU_RULES: tuple[Rule, ...] = ()
"""Those that programs were timed of on a GPU, and that made some faster."""

EXPERIMENTAL_GPU_RULES: tuple[Rule, ...] = (GpuElementwise(), GpuRowReduce(), GpuGemv(), GpuProduct())
"""Those of which no program has been timed on a GPU (docs/benchmarks/gpu.md). A search draws their programs like any
others, and measures their seeds only if `SearchConfig.experimental` says so."""
