"""Imported last by a builder's warm child: builds a program, so that its forks inherit one-time initialisation.

The first build in a process takes 25 ms longer than the next ones, and every fork's build is its first.
"""

import tvm
from tvm.target import Target

from loopwright.codegen.machine.kernels import cpu_copy

tvm.compile(tvm.IRModule({"main": cpu_copy(1024, 16)}), target=Target("llvm")).mod.inspect_source("asm")
