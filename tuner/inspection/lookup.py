"""The digests of functions that a user looks up. Runs in a disposable child, because its input may be hostile."""

from __future__ import annotations

from collections.abc import Iterator

from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import function_digest
from tuner.guard.module import load_module_json


def digests(modules: list[str]) -> Iterator[list[str]]:
    """Yield the digest of the one PrimFunc of each module, given as TVM's JSON.

    Raises InvalidModule for a module with another number of functions, and what `load_module_json` raises.
    """
    found = []
    for position, text in enumerate(modules):
        mod = load_module_json(text)
        funcs = prim_funcs(mod)
        if len(funcs) != 1 or len(mod.functions) != 1:
            raise InvalidModule(
                f"module {position} of the lookup has {len(mod.functions)} functions; "
                "give each lowered PrimFunc as a module of its own"
            )
        found.append(function_digest(funcs[0][1]))
    yield found
