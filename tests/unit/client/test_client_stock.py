"""Exported records whose schedules have intrinsics of Loopwright's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tvm.s_tir import TensorIntrin

import loopwright


def test_the_intrinsics_that_exported_records_name_are_registered(tmp_path: Path) -> None:
    name = "loopwright.row_sum_1936_2x8"
    steps = [["Tensorize", ["l1"], [each, 1], []] for each in (name, "dot_4x4_i8i8s32_neon")]
    record = [0, [[steps, []], [1e-5], {"kind": "llvm"}, []]]
    (tmp_path / "database_tuning_record.json").write_text(f"{json.dumps(record)}\n")
    assert TensorIntrin.get(name, allow_missing=True) is None
    assert loopwright.register_intrinsics(tmp_path) == (name,)
    assert TensorIntrin.get(name, allow_missing=True) is not None


def test_a_folder_without_records_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"database_tuning_record\.json"):
        loopwright.register_intrinsics(tmp_path)
