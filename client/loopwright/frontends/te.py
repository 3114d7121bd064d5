"""Tensor expressions: a list of ``te.Tensor``, inputs and outputs, in the order of the function's arguments."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from loopwright import ir
from loopwright.program import Program

if TYPE_CHECKING:
    from loopwright.frontends import Options

ACCEPTS = "a list of TE tensors"
OPTIONS: frozenset[str] = frozenset()


def accepts(model: Any) -> bool:
    te = sys.modules.get("tvm.te")
    if te is None or not isinstance(model, list | tuple) or not model:
        return False
    return all(isinstance(tensor, te.Tensor) for tensor in model)


def to_program(model: Any, options: Options) -> Program:
    te = importlib.import_module("tvm.te")
    return Program(ir.as_module(te.create_prim_func(list(model))))
