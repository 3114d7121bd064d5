"""What the warm child of a builder beside a GPU imports: everything of `workers.build`, and cuda's intrinsics."""

from tvm.target import Target

from loopwright.codegen.intrinsics import load_intrinsics
from workers.build import build

__all__ = ["build"]

load_intrinsics(Target("cuda"))
