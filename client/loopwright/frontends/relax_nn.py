"""Models written with TVM's own ``tvm.relax.frontend.nn``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from loopwright.program import Program, detach

if TYPE_CHECKING:
    from loopwright.frontends import Options

ACCEPTS = "a tvm.relax.frontend.nn.Module with spec"
OPTIONS = frozenset({"spec"})


def accepts(model: Any) -> bool:
    nn = sys.modules.get("tvm.relax.frontend.nn")
    return nn is not None and isinstance(model, nn.Module)


def to_program(model: Any, options: Options) -> Program:
    """Its methods as Relax functions; parameters are inputs behind the others, as ``export_tvm`` makes them."""
    if options.spec is None:
        raise TypeError('a Relax nn.Module needs spec={"forward": {"x": nn.spec.Tensor((1, 784), "float32")}}')
    mod, _ = model.export_tvm(spec=options.spec)
    return detach(mod)
