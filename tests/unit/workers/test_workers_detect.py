"""Names of processors by their flags, and which targets a device can serve."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psutil
import pytest
from tvm.target import codegen

from loopwright.codegen.host import cpu
from loopwright.codegen.target import canonical_target, target_from
from workers.device import detect

HASWELL = {
    "fpu",
    "sse",
    "sse2",
    "ssse3",
    "sse4_1",
    "sse4_2",
    "popcnt",
    "avx",
    "avx2",
    "fma",
    "bmi1",
    "bmi2",
    "f16c",
    "abm",
    "movbe",
    "aes",
}
SKYLAKE = HASWELL | {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd", "clwb"}
CASCADE_LAKE = SKYLAKE | {"avx512_vnni"}
ICE_LAKE = CASCADE_LAKE | {"avx512_vbmi2", "avx512_vbmi", "avx512_bitalg", "gfni", "vaes", "vpclmulqdq", "sha_ni"}
SAPPHIRE_RAPIDS = ICE_LAKE | {"amx_tile", "amx_int8", "amx_bf16", "avx512_fp16", "avx512_bf16"}
ALDER_LAKE = HASWELL | {"avx_vnni", "vaes", "vpclmulqdq", "gfni", "sha_ni", "clwb"}
ZEN1 = HASWELL | {"sha_ni", "sse4a"}
ZEN2 = ZEN1 | {"clwb"}
ZEN3 = ZEN2 | {"vaes", "vpclmulqdq"}
ZEN4 = ZEN3 | SKYLAKE | {"avx512_bf16", "avx512_vnni", "avx512_vbmi2", "gfni"}


@pytest.mark.parametrize(
    ("vendor", "flags", "name"),
    [
        ("GenuineIntel", SAPPHIRE_RAPIDS, "sapphirerapids"),
        ("GenuineIntel", SAPPHIRE_RAPIDS - {"amx_tile"}, "icelake-server"),  # a virtual machine that hides AMX
        ("GenuineIntel", ICE_LAKE, "icelake-server"),
        ("GenuineIntel", CASCADE_LAKE | {"avx512_bf16"}, "cascadelake"),
        ("GenuineIntel", SKYLAKE, "skylake-avx512"),
        ("GenuineIntel", ALDER_LAKE, "alderlake"),
        ("GenuineIntel", HASWELL, "haswell"),
        ("GenuineIntel", {"sse4_2", "popcnt"}, "x86-64-v2"),
        ("AuthenticAMD", ZEN4, "znver4"),
        ("AuthenticAMD", ZEN3, "znver3"),
        ("AuthenticAMD", ZEN2, "znver2"),
        ("AuthenticAMD", ZEN1, "znver1"),
        ("AuthenticAMD", HASWELL, "x86-64-v3"),
        ("CentaurHauls", SKYLAKE, "x86-64-v4"),
        ("unknown", HASWELL, "x86-64-v3"),
        ("unknown", set(), "x86-64"),
    ],
)
def test_a_processor_is_named_by_its_flags(vendor: str, flags: set[str], name: str) -> None:
    assert cpu.x86_generation(vendor, flags) == name


def test_caches_of_the_cores_that_threads_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    shared = {"index1": "Instruction 1 32K", "index0": "Data 1 48K", "index2": "Unified 2 2M", "index3": "Unified 3 1G"}
    for core in range(4):  # the fourth is not this process's
        for index, facts in shared.items():
            folder = tmp_path / f"cpu{core}" / "cache" / index
            folder.mkdir(parents=True)
            kind, level, size = facts.split()
            sharing = "0-3" if level == "3" else f"{core}"
            for name, text in (("type", kind), ("level", level), ("size", size), ("shared_cpu_list", sharing)):
                (folder / name).write_text(f"{text}\n")
    (tmp_path / "cpu1" / "cache" / "index2" / "size").unlink()
    assert cpu.cache_bytes(2, tmp_path) == {"L1": 2 * 48 * 2**10, "L2": 2 * 2**21, "L3": 2**30}
    assert cpu.cache_bytes(8, tmp_path) == {"L1": 3 * 48 * 2**10, "L2": 2 * 2**21, "L3": 2**30}
    assert cpu.cache_bytes(2, tmp_path / "nothing") == {}


def offer(mcpu: str, *mattr: str) -> str:
    fields: dict[str, object] = {"kind": "llvm", "mcpu": mcpu, "mtriple": "x86_64-unknown-linux-gnu"}
    return json.dumps(fields | ({"mattr": list(mattr)} if mattr else {}))


def cuda(arch: str) -> str:
    return json.dumps({"kind": "cuda", "arch": arch})


@pytest.mark.parametrize(
    ("target", "device", "runs"),
    [
        (offer("x86-64-v3"), offer("znver4"), True),
        (offer("haswell"), offer("sapphirerapids", "-prefer-256-bit"), True),
        (offer("sapphirerapids", "-prefer-256-bit"), offer("sapphirerapids"), True),
        (offer("skylake-avx512"), offer("icelake-server"), True),
        (offer("icelake-server"), offer("skylake-avx512"), False),
        (offer("sapphirerapids"), offer("haswell"), False),
        (offer("x86-64-v3", "+avx512f"), offer("haswell"), False),
        (cuda("sm_90"), cuda("sm_90"), True),
        (cuda("sm_90a"), cuda("sm_90"), True),
        (cuda("sm_80"), cuda("sm_90"), False),
        (cuda("sm_90"), offer("znver4"), False),
        (offer("znver4"), cuda("sm_90"), False),
    ],
)
def test_which_targets_a_device_serves(target: str, device: str, runs: bool) -> None:
    assert detect.runs_on(target, device) is runs


def test_the_device_that_offers_just_the_target_comes_before_others_that_run_it() -> None:
    offers = [canonical_target(target_from(each)) for each in (offer("sapphirerapids"), offer("haswell"))]
    for index, each in enumerate(offers):
        [found] = detect.match(each, offers)
        assert found.offer == index
    [found] = detect.match(offer("x86-64-v3"), offers)
    assert found.offer == 0


def test_another_machine_does_not_serve() -> None:
    arm = json.dumps({"kind": "llvm", "mtriple": "aarch64-unknown-linux-gnu", "mcpu": "neoverse-n1"})
    assert not detect.runs_on(arm, offer("znver4"))


def test_this_machine_is_a_device_class_that_serves_its_own_target() -> None:
    (devices,) = detect.detect()
    device_class = next(device.device_class for device in devices if device.name == "cpu")
    assert detect.runs_on(device_class.target_json, device_class.target_json)
    assert canonical_target(target_from(device_class.target_json)) == device_class.target_json
    assert 1 <= device_class.cores <= (psutil.cpu_count() or 1)


def test_a_machine_that_is_no_x86_is_what_llvm_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    (found,) = detect.detect()
    target = json.loads(found[0].device_class.target_json)
    assert (target["mtriple"], target["mcpu"]) == (codegen.llvm_get_system_triple(), codegen.llvm_get_system_cpu())


class Gpu:
    """What TVM says of an H100."""

    def __init__(self, exist: bool) -> None:
        self.exist = exist

    compute_version = "9.0"
    max_shared_memory_per_block = 49152
    max_threads_per_block = 1024
    warp_size = 32
    multi_processor_count = 132
    device_name = "NVIDIA H100"


def test_a_gpu_offers_the_shared_memory_that_kernels_may_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tvm.runtime.device", lambda kind, index: Gpu(index == 0))
    [[_, gpu]] = detect.detect()
    assert gpu.name == "cuda:0"
    target = target_from(gpu.device_class.target_json)
    assert (target.attrs["arch"], target.attrs["max_shared_memory_per_block"]) == ("sm_90", 232448)
