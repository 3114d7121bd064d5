"""PyTorch models as the client lowers them, beside what the service tunes of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
import tvm
from tvm import relax
from tvm.target import Target

from loopwright.applying.lookup import lower
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import function_digest, normal_form
from loopwright.codegen.program.lowering import lower as lower_module
from loopwright.codegen.program.schedule import scheduled_function
from loopwright.codegen.rule import applied_rule
from loopwright.codegen.rules import prior
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.weights.prepacking import fold_packing
from loopwright.frontends import to_program
from loopwright.model import Model
from tests.support.rule_programs import TARGET

LLVM = tvm.target.Target("llvm")


def lowered(model: torch.nn.Module, *inputs: torch.Tensor, **options: Any) -> tvm.IRModule:
    """Return a model lowered with its weights, whose functions are those that the service would tune."""
    program = to_program(Model(model.eval(), example_inputs=inputs, **options))
    submitted = lower_module(module_from_json(module_to_json(program.module)), LLVM)
    mod = lower(program, LLVM)
    assert digests(mod) <= digests(submitted)
    return mod


def digests(mod: tvm.IRModule) -> set[str]:
    return {function_digest(func) for _, func in prim_funcs(mod)}


def called(mod: tvm.IRModule) -> list[str]:
    """Return the names of the functions that ``main`` calls, in order and without the numbers that make them unique."""
    names: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.Call) and str(getattr(node.op, "name", "")) == "relax.call_tir":
            names.append(re.sub(r"(?<=[a-z])\d+(?=_|$)", "", str(node.args[0].name_hint)))

    relax.analysis.post_order_visit(mod["main"], visit)
    return names


def run(mod: tvm.IRModule, *inputs: torch.Tensor, target: Target = LLVM) -> Any:
    """Return what a lowered module computes."""
    machine = relax.VirtualMachine(compile_module(mod, target), tvm.cpu())
    return machine["main"](*(tvm.runtime.tensor(value.numpy()) for value in inputs)).numpy()


def check(model: torch.nn.Module, *inputs: torch.Tensor, **options: Any) -> tvm.IRModule:
    """Return a model lowered, after comparing what it computes with PyTorch."""
    mod = lowered(model, *inputs)
    with torch.no_grad():
        expected = model(*inputs).numpy()
    np.testing.assert_allclose(run(mod, *inputs), expected, rtol=1e-4, atol=1e-5)
    return mod


def check_first_choices(model: torch.nn.Module, *inputs: torch.Tensor, rtol: float, atol: float) -> list[str | None]:
    """Schedule each function of a model by the first choice of its rules, and compare the model with PyTorch.

    Returns the name of the rule of each function; None for one without a rule.
    """
    mod = lowered(model, *inputs)
    scheduled, rules = mod.clone(), []
    for var, func in prim_funcs(mod):
        workload = normal_form(func)
        trace = next(prior.choices(workload, TARGET), None)
        rule = applied_rule(trace)
        rules.append(None if rule is None else rule.name)
        if trace is not None:
            scheduled.update_func(var, scheduled_function(func, workload, trace, TARGET))
    with torch.no_grad():
        expected = model(*inputs).numpy()
    result = run(fold_packing(scheduled), *inputs, target=TARGET)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)
    return rules


class Calls(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any, **modules: torch.nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        modules = dict(self.named_children())
        return self.function(*inputs, **modules)
