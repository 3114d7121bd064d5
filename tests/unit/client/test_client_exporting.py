"""Libraries for another architecture than this machine's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tvm

from loopwright import UnsupportedModel, export_library
from loopwright.codegen.program import linking
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import add_one

FOREIGN = {"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mcpu": "generic-rv64", "mattr": ["+m", "+a", "+f", "+d"]}
_MACHINE = 18
"""Place of the architecture in the header of an ELF file."""
_RISCV = 243


def built() -> tvm.runtime.Module:
    return compile_module(tvm.IRModule({"main": add_one()}), target_from(FOREIGN))


def test_without_a_linker_for_it_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedModel, match="binutils-riscv64-linux-gnu"):
        export_library(built(), tmp_path / "code.so", FOREIGN)


def test_the_linker_of_the_architecture_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the linker, a script that keeps the first object: no machine must have every linker."""
    script = tmp_path / "riscv64-linux-gnu-ld"
    script.write_text(f'#!/bin/sh\n{shutil.which("cp")} "$4" "$3"\n')
    script.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    export_library(built(), tmp_path / "code.so", FOREIGN)
    assert (tmp_path / "code.so").read_bytes()[_MACHINE] == _RISCV


def test_this_machine_is_not_foreign() -> None:
    here = target_from({"kind": "llvm"})
    assert not linking.is_foreign(here)
    assert linking.linker(here) == shutil.which("ld")
