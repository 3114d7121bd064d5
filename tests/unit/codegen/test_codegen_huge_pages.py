"""Weights in huge pages: their values stay, and so do their addresses."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm

from loopwright.codegen.host import huge_pages
from loopwright.codegen.host.huge_pages import HUGE_PAGE
from loopwright.codegen.program.build import compile_module
from loopwright.packaging import load
from tests.support import rule_programs as programs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux moves memory into huge pages")


def test_tensors_that_are_moved_keep_their_values_and_addresses() -> None:
    values = np.random.default_rng(0).standard_normal(5 * HUGE_PAGE // 4 + 7).astype("float32")
    small, large = tvm.runtime.tensor(values[:1000]), tvm.runtime.tensor(values)
    address = large.data_ptr()
    moved = huge_pages.move([small, large])
    if not moved:
        pytest.skip("the kernel grants no huge pages")
    assert moved <= 6
    assert large.data_ptr() == address
    assert (large.numpy() == values).all()
    assert (small.numpy() == values[:1000]).all()


def test_small_tensors_take_no_huge_pages() -> None:
    assert huge_pages.move([tvm.runtime.tensor(np.zeros(1000, "float32"))]) == 0
    assert huge_pages.move([]) == 0


def test_constants_of_a_module_are_moved_once_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[Any] = []
    monkeypatch.setattr(huge_pages, "move", moved.extend)
    weight = tvm.runtime.tensor(np.arange(48, dtype="float32").reshape(6, 8))
    builder, x = tvm.relax.BlockBuilder(), tvm.relax.Var("x", tvm.relax.TensorType((4, 6), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(tvm.relax.op.matmul(x, tvm.relax.const(weight)))
        builder.emit_func_output(result)
    mod = tvm.relax.transform.LegalizeOps()(builder.get())
    run = tvm.relax.VirtualMachine(compile_module(mod, programs.TARGET), tvm.cpu())["main"]
    [constant] = moved
    # The machine reads what was moved, and no copy of it.
    constant.copyfrom(np.ones((6, 8), "float32"))
    assert (run(tvm.runtime.tensor(np.ones((4, 6), "float32"))).numpy() == 6).all()


@pytest.fixture
def memory() -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, 4 * HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as made:
        made[:] = b"\x07" * len(made)
        yield made


def test_memory_that_a_model_takes_is_found_and_keeps_its_values(memory: mmap.mmap) -> None:
    array = np.frombuffer(memory, np.uint8)
    start, found = array.ctypes.data, load.anonymous_memory()
    inside = {page for page in found if start <= page and page + HUGE_PAGE <= start + len(memory)}
    assert 3 <= len(inside) <= 4
    assert all(page % HUGE_PAGE == 0 for page in found)
    load.move_to_huge_pages(inside)
    assert (array == 7).all()
    del array
