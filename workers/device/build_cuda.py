"""Imported by the warm child of a builder beside a GPU: `workers.device.build` and cuda's intrinsics."""

from tvm.target import Target

from loopwright.codegen.program.intrinsics import load_intrinsics

load_intrinsics(Target("cuda"))
