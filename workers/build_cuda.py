"""What the warm child of a builder beside a GPU imports: everything of `workers.build`, and cuda's intrinsics."""

from tvm.target import Target

from tuner import ir
from workers.build import build

__all__ = ["build"]

ir.load_intrinsics(Target("cuda"))
