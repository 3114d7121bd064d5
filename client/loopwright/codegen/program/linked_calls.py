"""Calls of functions that were compiled before, in place of calls of PrimFuncs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, rewrite_calls
from loopwright.codegen.program.built_functions import BuiltFunction


def with_linked_calls(mod: tvm.IRModule, built: Mapping[str, BuiltFunction]) -> tvm.IRModule:
    """Return a module that calls compiled functions, by the names of private PrimFuncs whose place they take.

    Weights that they take packed are packed now if they are constants, and before each call if not.
    """
    return rewrite_calls(mod, lambda each: _Linked(each, built))


@mutator
class _Linked(CallRewriter):
    def __init__(self, mod: tvm.IRModule, built: Mapping[str, BuiltFunction]) -> None:
        super().__init__(mod)
        self.built = built
        self.constants: dict[tuple[int, str], relax.Constant] = {}
        """Packed weights, by their memory and what packs them."""

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name != "call_tir" or (function := self.built.get(str(call.args[0].name_hint))) is None:
            return call
        arguments = list(call.args[1].fields)
        if function.packed is not None:
            place = function.packed.argument
            arguments[place] = self.packed(arguments[place], function)
        [result] = call.ty_args
        results = list(result.fields) if isinstance(result, tvm.ir.TupleType) else result
        return relax.op.call_dps_packed(function.symbol, arguments, results)

    def packed(self, weight: Any, function: BuiltFunction) -> Any:
        assert function.packed is not None
        shape, dtype = function.packed.shape, function.packed.dtype
        value = self.value(weight)
        if not isinstance(value, tvm.ir.GenericConst):
            return self.emit(relax.op.call_dps_packed(function.pack_symbol, [weight], relax.TensorType(shape, dtype)))
        key = (int(value.value.data_ptr()), function.symbol)
        if key not in self.constants:
            tensor = tvm.runtime.empty(shape, dtype, tvm.cpu())
            function.pack(value.value, tensor)
            self.constants[key] = relax.const(tensor, dtype)
        return self.constants[key]
