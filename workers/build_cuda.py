"""Imported by the warm child of a builder beside a GPU: `workers.build` and cuda's intrinsics."""

from tvm.target import Target

import workers.build  # noqa: F401
from loopwright.codegen.program.intrinsics import load_intrinsics

load_intrinsics(Target("cuda"))
