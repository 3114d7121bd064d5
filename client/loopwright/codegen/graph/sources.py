"""Where the functions of a model come from: a module of PyTorch, a node of ONNX, a line of TVMScript.

Front ends translate with a `SourceBuilder`, which names each variable after the operator that it translates. Passes
keep the names of variables, and what they add is computed for a variable that has such a name. Fusion does not, so that
`with_places` looks at what it joins. Workloads have no sources: one function in two places is one workload.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from loopwright.codegen import labels
from loopwright.codegen.functions import prim_funcs, relax_funcs
from loopwright.codegen.graph.pooled_means import fuse
from loopwright.codegen.graph.rewriting import OPAQUE, OUTPUT_FUSABLE, op_name, source_name
from loopwright.codegen.syntax import parse

SOURCES = "loopwright.sources"
"""The attribute of a module that says which source the names of variables stand for."""
PLACES = "loopwright.places"
"""The attribute of a lowered module that says which sources each function comes from."""

_TAG = "loopwright.tag"
_REDUCTION = 3
"""Of ``relax::OpPatternKind``, as those of `loopwright.codegen.graph.rewriting`."""
_WEIGHT = {OUTPUT_FUSABLE: 2, OPAQUE: 1, _REDUCTION: 1}
"""By kind of operator: a fused function comes from where its heaviest does. Others weigh 0."""

_MOST = 1000
"""Sources of a function that are kept."""

Sources = tuple[str, ...]


class SourceBuilder(relax.BlockBuilder):
    """Names variables after ``source``, if it has one."""

    def __init__(self) -> None:
        super().__init__()
        self.source = ""
        self.names: dict[str, str] = {}

    def emit(self, expr: Any, name_hint: str = "") -> relax.Var:
        if self.source:
            name_hint = self.names.setdefault(self.source, f"v{len(self.names)}_")
        return super().emit(expr, name_hint)

    def emit_output(self, output: Any, name_hint: str = "") -> relax.Var:
        if isinstance(output, relax.Var):
            name_hint = source_name(output) or name_hint  # passes let the output take the place of the variable
        return super().emit_output(output, name_hint)

    def with_sources(self, mod: tvm.IRModule) -> tvm.IRModule:
        """Return a module that was built with the sources of its variables."""
        return mod.with_attr(SOURCES, {name: source for source, name in self.names.items()}) if self.names else mod


def with_lines(mod: tvm.IRModule, text: str) -> tvm.IRModule:
    """Return a module with the lines of the TVMScript that defines it as its sources.

    They are functions with lines: ``scale:12``. A PrimFunc comes from the line of its ``def``, a call in a Relax
    function from its own. A module that says already
    where it comes from is returned as it is.
    """
    if _attribute(mod, SOURCES):
        return mod
    functions = {node.name: node for node in ast.walk(parse(text)) if isinstance(node, ast.FunctionDef)}
    own = {name: [f"{name}:{node.lineno}"] for name, node in functions.items()}
    found = mod.with_attr(PLACES, {str(var.name_hint): own.get(str(var.name_hint), []) for var, _ in prim_funcs(mod)})
    lines: dict[str, str] = {}
    for var, func in relax_funcs(mod):
        names: dict[str, str] = {}
        for node in ast.walk(functions.get(str(var.name_hint)) or ast.Module([], [])):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name):
                names.setdefault(target.id, f"v{len(lines)}_")
                lines[names[target.id]] = f"{var.name_hint}:{target.lineno}"
        found.update_func(var, _Renamed(mod, names).visit_expr(func))
    return found.with_attr(SOURCES, lines) if lines else found


@mutator
class _Renamed(PyExprMutator):
    def __init__(self, mod: tvm.IRModule, names: Mapping[str, str]) -> None:
        super().__init__(mod)
        self.names = names

    def visit_var_def_(self, var: relax.Var) -> relax.Var:
        name = self.names.get(str(var.name))
        return var if name is None else type(var)(name, var.ty)


def places(mod: tvm.IRModule) -> dict[str, Sources]:
    """Return the sources of the functions of a lowered module, by name; a function without any is left out.

    The module may be anybody's, so that the attribute may be anything.
    """
    return {
        name: tuple(text for each in found[:_MOST] if (text := _text(each)))
        for name, found in _attribute(mod, PLACES).items()
        if isinstance(name, str) and isinstance(found, Sequence) and not isinstance(found, str)
    }


def with_places(mod: tvm.IRModule, fused: tvm.IRModule) -> tvm.IRModule:
    """Return a legalised module after fusion with the `places` of its functions.

    Args:
        mod: the module before `fuse`.
        fused: the module after ``FuseTIR``.
    """
    sources = _attribute(mod, SOURCES)
    if not sources:
        return fused
    found: dict[str, dict[str, None]] = defaultdict(dict)
    joined = _joined(mod, {str(name): text for name, each in sources.items() if (text := _text(each))})
    for var, func in relax_funcs(fused):
        calls = [_called(binding.value) for binding in _bindings(func)]
        of_calls = joined.get(str(var.name_hint), [])
        for name, of_call in zip(calls, of_calls, strict=False) if len(calls) == len(of_calls) else ():
            if name is not None:
                found[name] |= dict.fromkeys(of_call)
    return fused.without_attr(SOURCES).with_attr(PLACES, {name: list(each) for name, each in found.items() if each})


def _joined(mod: tvm.IRModule, texts: Mapping[str, str]) -> dict[str, list[Sources]]:
    """Return the sources of each binding of the Relax functions after `fuse`, by the name of the function.

    Calls are marked by numbers before they are fused, since equal functions become one.
    """
    marked, tags = mod.clone(), list[tuple[int, Sources]]()
    names = {str(var.name_hint) for var, _ in relax_funcs(mod)}
    for var, func in relax_funcs(mod):
        of_variables = _of_variables(func, texts)

        def mark(binding: relax.Binding, of_variables: Mapping[relax.Var, Sources] = of_variables) -> relax.Binding:
            if (name := _called(binding.value)) is None:
                return binding
            call, attrs = binding.value, mod[name].attrs or {}
            tags.append((_WEIGHT.get(attrs.get("op_pattern", 0), 0), of_variables.get(binding.var, ())))
            tagged = tvm.ir.Call(call.op, call.args, {_TAG: len(tags) - 1}, call.ty_args, call.span, call.ty)
            return relax.VarBinding(binding.var, tagged)

        blocks = [type(block)([mark(binding) for binding in block.bindings]) for block in func.body.blocks]
        body = relax.SeqExpr(blocks, func.body.body)
        marked.update_func(var, relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs))
    fused = fuse(marked)

    def sources(value: Any) -> Sources:
        calls: list[int] = []

        def visit(node: Any) -> None:
            # Calls that write in place have attributes of another kind.
            attrs = node.attrs if isinstance(node, tvm.ir.Call) else None
            if isinstance(attrs, tvm.ir.DictAttrs) and _TAG in attrs.keys():  # noqa: SIM118
                calls.append(int(attrs[_TAG]))

        if isinstance(value, tvm.ir.Call) and isinstance(value.op, tvm.ir.GlobalVar):
            value = fused[value.op]
        relax.analysis.post_order_visit(value, visit)
        return max((tags[each] for each in calls), key=lambda tag: tag[0], default=(0, ()))[1]

    return {
        str(var.name_hint): [sources(binding.value) for binding in _bindings(func)]
        for var, func in relax_funcs(fused)
        if str(var.name_hint) in names
    }


def _of_variables(func: relax.Function, texts: Mapping[str, str]) -> dict[relax.Var, Sources]:
    """Return the sources of variables: that of its name, or else those of the variables that are computed from it."""
    found: dict[relax.Var, dict[str, None]] = defaultdict(dict)
    for binding in reversed(list(_bindings(func))):
        if text := texts.get(source_name(binding.var)):
            found[binding.var] = {text: None}
        for operand in _operands(binding.value):
            found[operand] |= found[binding.var]
    return {var: tuple(each) for var, each in found.items()}


def _operands(value: Any) -> list[relax.Var]:
    operands: list[relax.Var] = []
    relax.analysis.post_order_visit(value, lambda node: operands.append(node) if isinstance(node, relax.Var) else None)
    return operands


def _bindings(func: relax.Function) -> Iterable[relax.Binding]:
    return (binding for block in func.body.blocks for binding in block.bindings)


def _called(value: Any) -> str | None:
    """Return the name of the function that a value calls by ``call_tir``; None if it is something else."""
    return str(value.args[0].name_hint) if op_name(value) == "call_tir" else None


def _attribute(mod: tvm.IRModule, name: str) -> Mapping[Any, Any]:
    found = mod.attrs.get(name) if mod.attrs else None
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    return labels.visible(value)[: labels.LONGEST] if isinstance(value, str) else ""
