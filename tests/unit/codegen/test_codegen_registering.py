"""Tensor intrinsics that several threads register."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest
import tvm

from loopwright.codegen.cpu import column_reduction


def test_an_intrinsic_that_two_threads_register_at_once_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    name, describe = "loopwright.columns_sum_7x11_4", column_reduction._description
    others: list[Future[bool]] = []

    def meanwhile(reduction: column_reduction.ColumnReduction) -> tvm.tirx.PrimFunc:
        """Let another thread register the same intrinsic before this one does, unless that thread has to wait."""
        if not others:
            others.append(pool.submit(column_reduction.register, name))
            wait(others, timeout=0.3)
        return describe(reduction)

    monkeypatch.setattr(column_reduction, "_description", meanwhile)
    with ThreadPoolExecutor(1) as pool:
        assert column_reduction.register(name)
        assert others[0].result()
