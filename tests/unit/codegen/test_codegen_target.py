"""Targets: every way to write one, and the one form that is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopwright.codegen.errors import InvalidTarget
from loopwright.codegen.target import canonical_target, shared_bytes, target_from, with_assumed_attributes

ACCEPTED: list[str | dict[str, Any]] = [
    "llvm",
    " llvm ",
    "llvm -mcpu=skylake-avx512 -mattr=+avx512f,-prefer-256-bit -num-cores 2",
    '{"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 4}',
    {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]},
    "raspberry-pi/4b-aarch64",
    "nvidia/nvidia-h100",
    "cuda -arch=sm_80",
    {"kind": "cuda", "arch": "sm_80", "host": {"kind": "llvm", "mcpu": "x86-64-v3"}},
]


@pytest.mark.parametrize("target", ACCEPTED, ids=str)
def test_the_stored_form_is_canonical(target: str | dict[str, Any]) -> None:
    stored = canonical_target(target_from(target))
    assert canonical_target(target_from(stored)) == stored
    assert list(json.loads(stored)) == sorted(json.loads(stored))


def test_the_old_form_means_what_it_says() -> None:
    old = target_from("llvm -mcpu=skylake-avx512 -mattr=+avx512f,-prefer-256-bit -num-cores 2")
    new = {"kind": "llvm", "mcpu": "skylake-avx512", "mattr": ["+avx512f", "-prefer-256-bit"], "num-cores": 2}
    assert json.loads(canonical_target(old)).items() >= new.items()
    assert canonical_target(old) == canonical_target(target_from(new))


def test_key_order_does_not_matter() -> None:
    one = target_from('{"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 4}')
    other = target_from('{"num-cores": 4, "mcpu": "x86-64-v3", "kind": "llvm"}')
    assert canonical_target(one) == canonical_target(other)


def test_the_host_of_a_gpu_is_part_of_it() -> None:
    stored = canonical_target(target_from({"kind": "cuda", "arch": "sm_80", "host": {"kind": "llvm", "mcpu": "x"}}))
    assert json.loads(stored)["host"] == {"kind": "llvm", "mcpu": "x"}


@pytest.mark.parametrize(
    "target",
    [
        "",
        "nope",
        "nvidia/none",
        "llvm -num-cores",
        "llvm -mcpu=",
        "{",
        "{}",
        '{"kind": 3}',
        "[1]",
        '{"kind": "llvm", "x": 1}',
    ],
)
def test_what_tvm_does_not_know_is_refused(target: str) -> None:
    with pytest.raises(InvalidTarget, match="TVM does not know the target"):
        target_from(target)


@pytest.mark.parametrize("target", ["vulkan", "opencl", "c", "metal", "rocm"])
def test_kinds_that_are_not_tuned_are_refused(target: str) -> None:
    with pytest.raises(InvalidTarget, match=r"cannot be tuned; use llvm, cuda or auto|does not know"):
        target_from(target)


@pytest.mark.parametrize(
    "fields",
    [
        {"cl-opt": ["-print-after-all:bool=1", "-ir-dump-directory:string=/tmp/x"]},
        {"libs": ["cblas"]},
        {"fast-math": 1},
        {"jit": "orcjit"},
        {"system-lib": 1},
        {"num-cores": -5},
        {"num-cores": 10**9},
        {"num-cores": 0},
        {"opt-level": 9},
        {"mcpu": "x86-64 -cl-opt=y"},
        {"mcpu": "a" * 65},
        {"mattr": ["+avx2,+fma /etc/x"]},
        {"mattr": ["avx2"]},
        {"mattr": ["+avx2"] * 300},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_orders_to_a_compiler_and_impossible_machines_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidTarget):
        target_from({"kind": "llvm", **fields})
    with pytest.raises(InvalidTarget):
        target_from({"kind": "cuda", "arch": "sm_80", "host": {"kind": "llvm", **fields}})


def test_the_host_of_a_gpu_is_a_processor() -> None:
    with pytest.raises(InvalidTarget, match="kind llvm, not 'c'"):
        target_from({"kind": "cuda", "arch": "sm_80", "host": {"kind": "c"}})


def test_a_refused_field_is_named_with_those_that_are_taken() -> None:
    with pytest.raises(InvalidTarget, match=r"sets 'cl-opt', which is not taken; a target may have arch, .*num-cores"):
        target_from({"kind": "llvm", "cl-opt": ["-view-edge-bundles:bool=1"]})


@pytest.mark.parametrize(
    ("target", "kib"),
    [
        ("nvidia/nvidia-h100", 227),  # in TVM's tag: 48
        ("nvidia/nvidia-a100", 163),
        ("nvidia/geforce-rtx-3090", 99),
        ("cuda -arch=sm_80", 163),
        ({"kind": "cuda", "arch": "sm_90a"}, 227),
        ({"kind": "cuda", "arch": "sm_100f"}, 227),
        ({"kind": "cuda", "arch": "sm_61"}, 48),
        ({"kind": "cuda", "arch": "sm_90", "max_shared_memory_per_block": 65536}, 64),
    ],
    ids=str,
)
def test_a_gpu_has_the_shared_memory_of_its_architecture(target: str | dict[str, Any], kib: int) -> None:
    parsed = target_from(target)
    assert shared_bytes(parsed) == kib * 1024
    assert with_assumed_attributes(parsed).attrs["max_shared_memory_per_block"] == kib * 1024
