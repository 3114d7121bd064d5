"""What TVM writes to standard error stays away from users, and nothing else does."""

from __future__ import annotations

import os

import pytest
from tvm import relax

from loopwright.applying.lookup import ASSUMED, lower
from loopwright.codegen.program import lowering
from loopwright.frontends.program import Program


def test_a_power_is_lowered_without_a_word(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((3, 20), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            power = builder.emit(relax.op.power(x, relax.const(5.0, "float32")))
            result = builder.emit_output(relax.op.add(power, x))
        builder.emit_func_output(result)
    mod = builder.get()
    lowering.lower(mod, ASSUMED)
    assert "Detected pow" in capfd.readouterr().err  # else there is nothing to keep away any more
    lower(Program(mod), ASSUMED)
    assert capfd.readouterr().err == ""

    def speak(*arguments: object) -> object:
        os.write(2, b"the disk is full\n")
        return mod

    monkeypatch.setattr(lowering, "lower", speak)
    lower(Program(mod), ASSUMED)
    assert capfd.readouterr().err == "the disk is full\n"
