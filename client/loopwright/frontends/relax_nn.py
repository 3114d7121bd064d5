"""Models written with TVM's own ``tvm.relax.frontend.nn``."""

from __future__ import annotations

import sys
from typing import Any

from loopwright.frontends.program import Program, detach
from loopwright.model import Model

ACCEPTS = "a tvm.relax.frontend.nn.Module with spec"
OPTIONS = frozenset({"spec"})


def accepts(model: Any) -> bool:
    nn = sys.modules.get("tvm.relax.frontend.nn")
    return nn is not None and isinstance(model, nn.Module)


def to_program(source: Model) -> Program:
    """Export the methods as Relax functions by ``export_tvm``, which makes parameters inputs behind the others."""
    if source.spec is None:
        raise TypeError('a Relax nn.Module needs spec={"forward": {"x": nn.spec.Tensor((1, 784), "float32")}}')
    mod, _ = source.model.export_tvm(spec=source.spec)
    return detach(mod)
