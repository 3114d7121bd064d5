"""The meaning of a schedule: one implementation, which the user's machine, the tuner and the workers share.

Versions, targets, tensor intrinsics, graph lowering, the digest that identifies a workload, applying a trace,
building, the threads that programs run with, and the lock that keeps timings on a host apart. These modules import
TVM, NumPy and the standard library, and nothing else: no HTTP, no pydantic, and no other part of `loopwright`.
`kinds`, `versions`, `errors`, `labels` and `host` import no TVM, either.
"""
