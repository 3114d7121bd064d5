"""The processor of this machine: its flags, the name of its generation, and its caches. Imports no TVM."""

from __future__ import annotations

import os
from pathlib import Path

# LLVM's names for processor generations, newest first, each with CPU flags that only it and newer ones have. LLVM's own
# detection goes by model numbers, which hypervisors report wrongly; the generated code depends on the flags.
_GENERATIONS: dict[str, list[tuple[str, set[str]]]] = {
    "GenuineIntel": [
        ("sapphirerapids", {"amx_tile", "avx512_fp16", "avx512_bf16"}),
        ("icelake-server", {"avx512_vbmi2", "avx512_vnni", "avx512f"}),
        ("cascadelake", {"avx512_vnni", "avx512f"}),
        ("skylake-avx512", {"avx512f", "avx512dq", "avx512bw", "avx512vl"}),
        ("alderlake", {"avx_vnni", "vaes", "vpclmulqdq", "gfni", "sha_ni", "clwb", "avx2", "fma", "bmi2"}),
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


def x86_generation(vendor: str, flags: set[str]) -> str:
    """Return the newest processor name whose instructions all appear in ``flags`` (names as in /proc/cpuinfo)."""
    for name, needed in [*_GENERATIONS.get(vendor, []), *_LEVELS]:
        if needed <= flags:
            return name
    return "x86-64"


def model_name() -> str:
    """Return the name of this machine's processor, as in /proc/cpuinfo (Linux); empty if the kernel tells none."""
    return _fields().get("model name", "")


def _fields() -> dict[str, str]:
    """Return what /proc/cpuinfo tells of the first processor."""
    lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def flags() -> tuple[str, set[str]]:
    """Return the vendor of this machine's processor, and its flags, as in /proc/cpuinfo (Linux)."""
    fields = _fields()
    vendor = fields.get("vendor_id") or fields.get("CPU implementer") or "unknown"
    return vendor, set((fields.get("flags") or fields.get("Features") or "").split())


def cache_bytes(threads: int, root: Path = Path("/sys/devices/system/cpu")) -> dict[str, int]:
    """Return the bytes of data in the caches that so many threads on cores of their own use together, by level.

    ``L1`` comes first. Empty if the system does not tell (Linux's sysfs does).
    """
    sizes: dict[str, dict[str, int]] = {}
    for number in sorted(os.sched_getaffinity(0)):
        for cache in sorted((root / f"cpu{number}" / "cache").glob("index*")):
            try:
                kind, level, size, sharing = (
                    (cache / name).read_text().strip() for name in ("type", "level", "size", "shared_cpu_list")
                )
            except OSError:
                continue
            if kind != "Instruction":
                sizes.setdefault(f"L{level}", {})[sharing] = _bytes(size)
    return {name: sum(sorted(sizes[name].values())[-threads:]) for name in sorted(sizes)}


def _bytes(size: str) -> int:
    """Return a size of sysfs, such as ``32K``, in bytes."""
    return int(size.rstrip("KMG")) * {"K": 2**10, "M": 2**20, "G": 2**30}.get(size[-1:], 1)
