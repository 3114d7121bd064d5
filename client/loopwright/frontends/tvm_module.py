"""Programs as TVM objects: IRModule and PrimFunc."""

from __future__ import annotations

import sys
from typing import Any

from loopwright.extras import require_tvm
from loopwright.frontends.program import Program, detach
from loopwright.model import Model

ACCEPTS = "a tvm.IRModule or tirx.PrimFunc"
OPTIONS: frozenset[str] = frozenset()


def accepts(model: Any) -> bool:
    # Whoever holds a TVM object has imported TVM already.
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(model, (tvm.IRModule, tvm.tirx.PrimFunc))


def to_program(source: Model) -> Program:
    require_tvm()
    from loopwright.codegen.functions import as_module

    return detach(as_module(source.model))
