"""TVMScript is read as TVM reads it, and no module is searched for the frames that TVM looks at."""

from __future__ import annotations

import inspect
import types

import pytest
import tvm
import tvm_ffi

from loopwright.codegen.script import parse_script, skip_searches
from tests.support.programs import product, product_relu


@pytest.mark.parametrize("text", [product(24), product_relu(24)])
def test_what_is_read_is_what_tvm_reads(text: str) -> None:
    assert tvm_ffi.structural_equal(parse_script(text), tvm.script.from_source(text))


def test_the_errors_are_tvms() -> None:
    with pytest.raises(tvm.error.DiagnosticError):
        parse_script("@T.prim_func\ndef main(a: T.handle):\n    T.no_such_thing()\n")


@pytest.mark.parametrize("file", ["<ast>", "<string>", "<stdin>", "<frozen runpy>"])
def test_code_without_a_file_is_not_searched_for(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_searches()
    look = compile("inspect.stack()", file, "eval")
    eval(look)  # `inspect` keeps where it found the frames that have files
    seen: list[object] = []

    def ismodule(item: object) -> bool:
        seen.append(item)
        return isinstance(item, types.ModuleType)

    monkeypatch.setattr(inspect, "ismodule", ismodule)
    stack = eval(look)
    assert any(frame.filename == file for frame in stack)
    assert len(seen) < 10 * len(stack), "a search looks at all modules"
