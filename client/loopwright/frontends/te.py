"""Tensor expressions: a list of ``te.Tensor``, inputs and outputs, in the order of the function's arguments."""

from __future__ import annotations

import sys
from typing import Any

from loopwright.extras import require_tvm
from loopwright.frontends.program import Program
from loopwright.model import Model

ACCEPTS = "a list of TE tensors"
OPTIONS: frozenset[str] = frozenset()


def accepts(model: Any) -> bool:
    te = sys.modules.get("tvm.te")
    if te is None or not isinstance(model, list | tuple) or not model:
        return False
    return all(isinstance(tensor, te.Tensor) for tensor in model)


def to_program(source: Model) -> Program:
    require_tvm()
    from tvm import te

    from loopwright.codegen.functions import as_module

    return Program(as_module(te.create_prim_func(list(source.model))))
