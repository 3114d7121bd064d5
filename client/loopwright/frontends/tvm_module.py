"""Programs as TVM objects: IRModule and PrimFunc."""

from __future__ import annotations

import sys
from typing import Any

from loopwright import ir
from loopwright.schemas import ModulePayload

ACCEPTS = "a tvm.IRModule or tirx.PrimFunc"


def accepts(model: Any) -> bool:
    # Whoever holds a TVM object has imported TVM already.
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(model, (tvm.IRModule, tvm.tirx.PrimFunc))


def to_payload(model: Any) -> ModulePayload:
    return ModulePayload(format="tvm-json", data=ir.module_to_json(to_module(model)))


def to_module(model: Any) -> Any:
    return ir.as_module(model)
