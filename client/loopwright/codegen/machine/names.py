"""What people call the machines of a device class, and a processor as labels of a worker name it. Imports no TVM."""

from __future__ import annotations

import functools
import json
import re

_VENDORS = {
    "GenuineIntel": "Intel",
    "AuthenticAMD": "AMD",
    # The kernel tells an ARM processor's implementer by its number.
    "0x41": "Arm",
    "0x46": "Fujitsu",
    "0x48": "HiSilicon",
    "0x4e": "NVIDIA",
    "0x51": "Qualcomm",
    "0x61": "Apple",
    "0xc0": "Ampere",
}
_GENERATIONS = {
    "sapphirerapids": "Sapphire Rapids",
    "icelake-server": "Ice Lake",
    "cascadelake": "Cascade Lake",
    "skylake-avx512": "Skylake-X",
    "alderlake": "Alder Lake",
    "haswell": "Haswell",
    "znver5": "Zen 5",
    "znver4": "Zen 4",
    "znver3": "Zen 3",
    "znver2": "Zen 2",
    "znver1": "Zen",
}
"""LLVM's names of processor generations (`loopwright.codegen.host.cpu`), and those of their vendors."""
_CPU = re.compile(rf"({'|'.join(_VENDORS)}) (\S+) [0-9a-f]+")
_DIGEST = re.compile(r" [0-9a-f]{8}$")
"""Of the features, at the end of a board's model."""
_LONGEST_LABEL = 63


@functools.lru_cache(256)
def machine_name(model: str, target_json: str) -> str:
    """Return the name of a device class for people: ``AMD Zen 3, 2 cores`` for ``AuthenticAMD znver3 1ddebed0``.

    ``model`` and ``target_json`` are those of the class. Models of GPUs, and others that are names already, stay.
    """
    if (cpu := _CPU.fullmatch(model)) is not None:
        name = f"{_VENDORS[cpu[1]]} {_GENERATIONS.get(cpu[2], cpu[2])}"
    else:
        name = _DIGEST.sub("", model)
    cores = json.loads(target_json).get("num-cores")
    return name if cores is None else f"{name}, {cores} {'core' if cores == 1 else 'cores'}"


def processor_label(name: str) -> str:
    """Return a processor's name as the value of a label, ``AMD-EPYC-7763-64-Core-Processor``; empty for no name."""
    words = re.findall(r"[A-Za-z0-9_.]+", re.sub(r"\((?:R|TM|tm)\)|@.*", " ", name))
    return "-".join(words)[:_LONGEST_LABEL].strip("-_.")
