"""Symbolic extents of PyTorch models under the names that the user gave them: ``torch.export.Dim("batch")``."""

from __future__ import annotations

import sys
from typing import Any

from loopwright.errors import UnsupportedModel


def named(mod: Any, exported: Any) -> Any:
    """Return an exported program's module with the names of its ``Dim``s in place of PyTorch's own, such as ``s77``.

    Extents without a ``Dim`` keep PyTorch's, as do those of a program from a file, which has no other names.

    Raises:
        UnsupportedModel: an extent is in the inputs within expressions only, out of which TVM cannot take its value.
    """
    from tvm import relax

    names, renamed = _names(exported), mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function):
            renamed.update_func(var, _renamed(func, names))
    return renamed


def _renamed(func: Any, names: dict[str, str]) -> Any:
    import tvm
    from tvm import relax

    if hidden := {names.get(str(symbol.name), str(symbol.name)) for symbol in relax.analysis.free_symbolic_vars(func)}:
        raise UnsupportedModel(
            f"the extent {', '.join(sorted(hidden))} occurs in expressions only, and no dimension of an input is equal "
            "to it; declare such a dimension as a Dim of its own"
        )
    symbols = [symbol for symbol in relax.analysis.defined_symbolic_vars(func) if str(symbol.name) in names]
    func = func.bind_symbolic_vars({symbol: tvm.tirx.Var(names[str(symbol.name)], symbol.ty) for symbol in symbols})
    for bound in ("tir_var_lower_bound", "tir_var_upper_bound"):
        if func.attrs and bound in func.attrs:
            limits = {names.get(str(name), str(name)): limit for name, limit in func.attrs[bound].items()}
            func = func.with_attr(bound, limits)
    return func


def _names(exported: Any) -> dict[str, str]:
    """Return the names of ``Dim``s by those of PyTorch's symbols."""
    torch = sys.modules["torch"]
    values = [node.meta.get("val") for node in exported.graph.find_nodes(op="placeholder")]
    symbolic = [
        extent for value in values for extent in getattr(value, "shape", ()) if isinstance(extent, torch.SymInt)
    ]
    if not symbolic:
        return {}
    environment = symbolic[0].node.shape_env
    names = {}
    for symbol, sources in environment.var_to_sources.items():
        for source in sources:
            # A method in earlier versions of PyTorch. A Dim that is in expressions only is a source itself.
            of_source = source.name() if callable(source.name) else source.name
            name = environment.source_name_to_debug_name.get(of_source, of_source)
            if name.isidentifier():  # else it is an expression, or no Dim
                names[str(symbol)] = name
    return names
