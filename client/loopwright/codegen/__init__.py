"""What a schedule means: the one implementation that the user's machine, the tuner and the workers share.

Versions, targets, tensor intrinsics, graph lowering, the digest that identifies a workload, applying a trace,
building, and the threads that programs run with. These modules import TVM, NumPy and the standard library, and nothing
else: no HTTP, no pydantic, and no other part of `loopwright`. `versions`, `errors`, `labels` and `threads` import no
TVM, either.
"""
