"""The listed words are the installed TVM's, and none of them is a package, a file or a foreign function."""

from __future__ import annotations

import types

import pytest
import tvm_ffi
from tvm.script import ir, relax, tirx

from tuner.guard import dialect

ROOTS = {"I": ir, "T": tirx, "R": relax}


@pytest.mark.parametrize("namespace", dialect.NAMESPACES)
def test_every_listed_name_is_a_word_of_the_installed_dialect(namespace: str) -> None:
    root, *rest = namespace.split(".")
    holder = ROOTS[root]
    for part in rest:
        holder = getattr(holder, part)
    for name in dialect.NAMESPACES[namespace]:
        assert not name.startswith("_")
        value = getattr(holder, name)
        assert not isinstance(value, types.ModuleType | tvm_ffi.Function)
        assert type(value).__module__.startswith(("tvm", "builtins"))
        origin = getattr(value, "__module__", None) or type(value).__module__
        assert origin.startswith("tvm"), f"{namespace}.{name} comes from {origin}"


def test_what_leaves_the_program_is_not_listed() -> None:
    listed = frozenset().union(*dialect.NAMESPACES.values())
    assert not listed & dialect.CALLING_OUT
    assert not listed & {"macro", "inline", "jit", "pyfunc", "emit_te", "rewriter", "comm_reducer", "index_map"}


def test_decorators_exist() -> None:
    for name in dialect.DECORATORS:
        root, _, attribute = name.rpartition(".")
        assert callable(getattr(ROOTS[{"tvm.script": "I"}.get(root, root)], attribute))
