"""The devices of this machine: one device class for its CPU, one for each of its NVIDIA GPUs.

Runs in a fork of a warm child, because asking for a GPU initialises CUDA.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import tvm
from tvm.target import Target, codegen

from loopwright.codegen.host import cpu
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.target import canonical_target, instructions, most_shared_bytes, target_from, triple
from loopwright.codegen.versions import TVM_VERSION
from tuner.inspection.answers import TargetMatch
from tuner.types import DeviceClass
from workers.messages import DetectedDevice

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
    vendor, flags = cpu.flags()
    target, features = this_cpu(), sorted(flags)
    cores = int(target.attrs["num-cores"])
    digest = hashlib.sha256(" ".join(features).encode()).hexdigest()[:8]
    device_class = DeviceClass(
        target_json=canonical_target(target),
        model=f"{vendor} {target.attrs['mcpu']} {digest}",
        features=tuple(features),
        cores=cores,
        threads=cores,
        runtime=runtime_version(),
    )
    return DetectedDevice("cpu", device_class, cpu.model_name())


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
    return same_machine and instructions(target) <= instructions(offer)


def _arch(target: Target) -> str:
    return str(target.attrs.get("arch", "")).rstrip("af")
