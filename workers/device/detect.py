"""The devices of this machine: one device class for its CPU, one for each of its NVIDIA GPUs.

Runs in a fork of a warm child, because asking for a GPU initialises CUDA.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target, codegen

from loopwright.codegen.host.threads import usable_cores
from loopwright.codegen.target import canonical_target, most_shared_bytes, target_from, triple
from loopwright.codegen.versions import TVM_VERSION
from tuner.inspection.answers import TargetMatch
from tuner.types import DeviceClass
from workers.device import vector_width
from workers.messages import DetectedDevice

# LLVM's names for processor generations, newest first, each with CPU flags that only it and newer ones have. LLVM's own
# detection goes by model numbers, which hypervisors report wrongly; the generated code depends on the flags.
_GENERATIONS: dict[str, list[tuple[str, set[str]]]] = {
    "GenuineIntel": [
        ("sapphirerapids", {"amx_tile", "avx512_fp16", "avx512_bf16"}),
        ("icelake-server", {"avx512_vbmi2", "avx512_vnni", "avx512f"}),
        ("cascadelake", {"avx512_vnni", "avx512f"}),
        ("skylake-avx512", {"avx512f", "avx512dq", "avx512bw", "avx512vl"}),
        ("haswell", {"avx2", "fma", "bmi2"}),
    ],
    "AuthenticAMD": [
        ("znver4", {"avx512f", "avx512_bf16", "avx512_vnni", "avx512_vbmi2"}),
        ("znver3", {"avx2", "vaes", "vpclmulqdq", "fma"}),
        ("znver2", {"avx2", "clwb", "fma"}),
        ("znver1", {"avx2", "fma", "sha_ni"}),
    ],
}
_LEVELS: list[tuple[str, set[str]]] = [
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx2", "fma", "bmi1", "bmi2", "f16c"}),
    ("x86-64-v2", {"sse4_2", "popcnt"}),
]
# LLVM lists hints to its scheduler among the features; code that follows a hint runs on any processor.
_ADVICE = (
    "slow-", "fast-", "faster-", "prefer-", "false-deps-", "tuning-", "no-bypass-", "allow-light-", "idivq-",
    "sbb-dep-", "macrofusion", "branchfusion", "vzeroupper", "ermsb", "fsrm", "pconfig",
)  # fmt: skip

# Attributes that describe the machine rather than the code for it.
_MACHINE = {
    "num-cores", "max_shared_memory_per_block", "max_threads_per_block", "thread_warp_size", "registers_per_block",
    "max_num_threads",
}  # fmt: skip


def detect() -> Iterator[list[DetectedDevice]]:
    """Yield the `DetectedDevice` of every device in one list; the entry point in a child."""
    yield [_cpu(), *_gpus()]


def runtime_version() -> str:
    return f"tvm {TVM_VERSION}, llvm {codegen.llvm_version_major()}"


def _cpu() -> DetectedDevice:
    vendor, flags = _cpuinfo()
    cores = usable_cores()
    target: dict[str, Any] = {"kind": "llvm", "num-cores": cores}
    if platform.machine() in ("x86_64", "AMD64"):
        target["mcpu"] = x86_generation(vendor, flags)
        if "avx512f" in flags:
            target["mattr"] = vector_width.attributes(target["mcpu"], vector_width.relative_speed(target["mcpu"]))
    else:
        target["mtriple"] = codegen.llvm_get_system_triple()
        target["mcpu"] = codegen.llvm_get_system_cpu()
    features = sorted(flags)
    digest = hashlib.sha256(" ".join(features).encode()).hexdigest()[:8]
    device_class = DeviceClass(
        target_json=canonical_target(Target(target)),
        model=f"{vendor} {target['mcpu']} {digest}",
        features=tuple(features),
        cores=cores,
        threads=cores,
        runtime=runtime_version(),
    )
    return DetectedDevice("cpu", device_class)


def x86_generation(vendor: str, flags: set[str]) -> str:
    """Return the newest processor name whose instructions all appear in ``flags`` (names as in /proc/cpuinfo)."""
    for name, needed in [*_GENERATIONS.get(vendor, []), *_LEVELS]:
        if needed <= flags:
            return name
    return "x86-64"


def _cpuinfo() -> tuple[str, set[str]]:
    lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    vendor = fields.get("vendor_id") or fields.get("CPU implementer") or "unknown"
    return vendor, set((fields.get("flags") or fields.get("Features") or "").split())


def _gpus() -> list[DetectedDevice]:
    devices: list[DetectedDevice] = []
    index = 0
    while (device := tvm.runtime.device("cuda", index)).exist:
        arch = f"sm_{str(device.compute_version).replace('.', '')}"
        # The device itself says what a kernel may declare, not what it may ask for when it is launched.
        declared = int(device.max_shared_memory_per_block)
        target = Target(
            {
                "kind": "cuda",
                "arch": arch,
                "max_shared_memory_per_block": most_shared_bytes(Target({"kind": "cuda", "arch": arch})) or declared,
                "max_threads_per_block": int(device.max_threads_per_block),
                "thread_warp_size": int(device.warp_size),
                "registers_per_block": 65536,
            }
        )
        device_class = DeviceClass(
            target_json=canonical_target(target),
            model=str(device.device_name),
            features=(f"compute {device.compute_version}",),
            cores=int(device.multi_processor_count),
            threads=1,
            runtime=runtime_version(),
        )
        devices.append(DetectedDevice(f"cuda:{index}", device_class))
        index += 1
    return devices


def match(target: str, offers: list[str]) -> Iterator[TargetMatch]:
    """Yield a user's target, and which of the offered devices runs it.

    What rules need and the user left out (the number of cores, a GPU's limits) is taken
    from the offer. A device that offers just this target comes before others that run it. Raises InvalidTarget.
    """
    requested = target_from(target)
    text = canonical_target(requested)
    for index, offer in sorted(enumerate(offers), key=lambda each: each[1] != text):
        if runs_on(text, offer):
            offered, own = json.loads(offer), json.loads(text)
            filled = {name: value for name, value in offered.items() if name in _MACHINE} | own
            yield TargetMatch(canonical_target(target_from(filled)), index)
            return
    yield TargetMatch(text, None)


def runs_on(target_json: str, offer_json: str) -> bool:
    """Return whether code for a target runs on the device that offers ``offer_json``, with comparable timings."""
    target, offer = Target(json.loads(target_json)), Target(json.loads(offer_json))
    if target.kind.name != offer.kind.name:
        return False
    if target.kind.name == "cuda":
        return _arch(target) == _arch(offer)
    same_machine = triple(target).split("-")[0] == triple(offer).split("-")[0]
    return same_machine and _instructions(target) <= _instructions(offer)


def _instructions(target: Target) -> set[str]:
    """Return the instruction sets that code for an llvm target may use, in LLVM's names."""
    return {name for name in map(str, codegen.llvm_get_cpu_features(target)) if not name.startswith(_ADVICE)}


def _arch(target: Target) -> str:
    return str(target.attrs.get("arch", "")).rstrip("af")
