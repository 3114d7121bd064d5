"""The inputs of a model's program. Needs TVM."""

from __future__ import annotations

import tvm
from tvm import relax

from loopwright.packaging.manifest import TensorSpec


def fixed_inputs(mod: tvm.IRModule) -> tuple[TensorSpec, ...]:
    """Return what ``main`` takes.

    Raises:
        ValueError: the module has no Relax function ``main``, or an input has no fixed shape.
    """
    main = next((func for var, func in mod.functions_items() if var.name_hint == "main"), None)
    if not isinstance(main, relax.Function):
        raise ValueError("this module has no Relax function main; give a whole model")
    specs = []
    for param in main.params:
        shape = getattr(param.ty, "shape", None)
        if shape is None or not all(hasattr(extent, "value") for extent in shape):
            raise ValueError(f"input {param.name} has no fixed shape; give the extents, as shapes={{'n': 128}}")
        specs.append(TensorSpec(name=str(param.name), shape=tuple(map(int, shape)), dtype=str(param.ty.dtype)))
    return tuple(specs)
