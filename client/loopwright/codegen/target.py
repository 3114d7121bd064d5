"""Targets: every way to write one, and the one form that is stored."""

from __future__ import annotations

import json
import re
from typing import Any

from tvm.target import Target, codegen

from loopwright.codegen.errors import InvalidTarget, last_line
from loopwright.codegen.serialization import plain_json

KINDS = ("llvm", "cuda")
"""The kinds of targets that are tuned."""

_ASSUMED: dict[str, dict[str, Any]] = {
    "llvm": {"num-cores": 1},
    "cuda": {"max_threads_per_block": 1024},
}
"""Attributes that TVM's schedule rules read and that a target may leave out, beside a GPU's shared memory. The number
of threads holds for every GPU that CUDA supports."""
STATIC_SHARED_BYTES = 48 * 1024
"""What a block of threads can have on every GPU, and the most that CUDA's compiler lets a kernel declare."""
_SHARED_KIB = {
    "70": 96, "72": 96, "75": 64, "80": 163, "86": 99, "87": 163, "88": 99, "89": 99, "90": 227, "100": 227, "103": 227,
    "110": 227, "120": 99, "121": 99,
}  # fmt: skip
"""By compute capability: shared memory in KiB that a block can have if the kernel asks for it when it is launched
("Maximum amount of shared memory per thread block" in the CUDA C++ Programming Guide). TVM's kernels ask for it."""

# LLVM lists hints to its scheduler among the features; code that follows a hint runs on any processor.
_ADVICE = (
    "slow-", "fast-", "faster-", "prefer-", "false-deps-", "tuning-", "no-bypass-", "allow-light-", "idivq-",
    "sbb-dep-", "macrofusion", "branchfusion", "vzeroupper", "ermsb", "fsrm", "pconfig",
)  # fmt: skip

_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NAMES = frozenset({"kind", "tag", "keys", "device", "model", "mcpu", "mtriple", "arch"})
"""Fields that hold a word, or a list of words."""
_FEATURE = re.compile(r"[+-][A-Za-z0-9_.-]{1,64}")
_RANGES = {
    "num-cores": (1, 4096),
    "opt-level": (0, 3),
    "max_threads_per_block": (1, 1024),
    "max_num_threads": (1, 1024),
    "thread_warp_size": (1, 64),
    "max_shared_memory_per_block": (1, 2**20),
    "registers_per_block": (1, 2**20),
    "l2_cache_size_bytes": (0, 2**40),
}
"""Fields that hold a number, with the least and the greatest one."""
_MOST_WORDS = 256
_DERIVED = "feature."
"""Begins the names of flags that TVM derives from the other fields."""


def target_from(target: str | dict[str, Any] | Target) -> Target:
    """Return a Target from a Target, a kind, a tag, JSON text, a dictionary, or the old ``llvm -mcpu=…`` form.

    A target describes a machine. Fields that give orders to a compiler (``cl-opt``, which makes LLVM write files, for
    one) are refused, because a service compiles for the targets of its users. LLVM's ``opt-level`` is taken: it does
    no more than select among LLVM's own levels, and stored targets may have it.

    Raises:
        InvalidTarget: TVM does not know it, it is of a kind that is not tuned, or it has a field that is not taken.
    """
    parsed = target if isinstance(target, Target) else _parsed(target)
    if parsed.kind.name not in KINDS:
        raise InvalidTarget(f"target kind {parsed.kind.name!r} cannot be tuned; use llvm, cuda or auto")
    cpu = parsed.attrs.get("mcpu")
    # LLVM itself would only warn, and generate code for any processor.
    if parsed.kind.name == "llvm" and cpu and not codegen.llvm_is_valid_cpu(cpu, triple(parsed)):
        raise InvalidTarget(
            f"LLVM does not know the processor {cpu!r} for {triple(parsed)}; use auto, or leave mcpu out"
        )
    _check(json.loads(canonical_target(parsed)))
    return parsed


def canonical_target(target: Target) -> str:
    """Return the target as JSON text with sorted keys, without the fields that TVM derives by itself."""
    return json.dumps(_without_derived(plain_json(target.export())), sort_keys=True)


def with_assumed_attributes(target: Target) -> Target:
    """Return the target with the attributes that TVM's schedule rules need and that it leaves out."""
    assumed = _ASSUMED[target.kind.name]
    if target.kind.name == "cuda":
        assumed = assumed | {"max_shared_memory_per_block": shared_bytes(target)}
    if all(key in target.attrs for key in assumed):
        return target
    return Target(assumed | json.loads(canonical_target(target)))


def shared_bytes(target: Target) -> int:
    """Return how many bytes of shared memory a block of threads may have on a cuda target.

    The target's own ``max_shared_memory_per_block``, or else what GPUs of its architecture have; 48 KiB if it is not
    known.
    """
    own = target.attrs.get("max_shared_memory_per_block")
    return int(own) if own is not None else most_shared_bytes(target) or STATIC_SHARED_BYTES


def most_shared_bytes(target: Target) -> int | None:
    """Return the bytes of shared memory that a block can have on GPUs of a target's architecture. None: not known."""
    kib = _SHARED_KIB.get(str(target.attrs.get("arch", "")).removeprefix("sm_").rstrip("af"))
    return None if kib is None else kib * 1024


def compute_capability(target: Target) -> int:
    """Return the compute capability of a cuda target's architecture, times ten: 90 for ``sm_90a``; 0 without one."""
    digits = re.search(r"\d+", str(target.attrs.get("arch", "")))
    return int(digits[0]) if digits else 0


def with_shared_bytes(target: Target, most: int) -> Target:
    """Return a cuda target whose blocks of threads may have ``most`` bytes of shared memory."""
    return Target(json.loads(canonical_target(target)) | {"max_shared_memory_per_block": most})


def triple(target: Target) -> str:
    """Return the LLVM triple of an llvm target: its own, or else this machine's."""
    return str(target.attrs.get("mtriple") or codegen.llvm_get_system_triple())


def _parsed(text_or_dict: str | dict[str, Any]) -> Target:
    value: str | dict[str, Any] = text_or_dict
    try:
        if isinstance(value, str):
            value = value.strip()
            if value.startswith("{"):
                value = json.loads(value)
            elif " -" in value:
                value = _options_to_dict(value)
            elif "/" in value:
                return _of_tag(value)
        return Target(value)
    except Exception as error:
        raise InvalidTarget(
            f"TVM does not know the target {text_or_dict!r}: {last_line(error)}. "
            "Use auto, llvm, cuda, options such as 'llvm -mcpu=znver4', a tag such as nvidia/nvidia-h100, or JSON"
        ) from error


def _of_tag(tag: str) -> Target:
    """Return a tag's target. TVM's tags give every GPU 48 KiB of shared memory, which is what kernels may declare."""
    target = Target(tag)
    if target.kind.name != "cuda":
        return target
    return with_shared_bytes(target, most_shared_bytes(target) or STATIC_SHARED_BYTES)


def _check(fields: dict[str, Any]) -> None:
    """Refuse a field that is neither a name nor a number of those above, in the target and in its host."""
    for name, value in fields.items():
        if name == "host" and isinstance(value, dict):
            if value.get("kind") != "llvm":
                raise InvalidTarget(f"the host of a target is of kind llvm, not {value.get('kind')!r}")
            _check(value)
        elif name in _RANGES:
            least, most = _RANGES[name]
            if type(value) is not int or not least <= value <= most:
                raise InvalidTarget(f"the target's {name} is a number from {least} to {most}, not {value!r}")
        elif name in _NAMES or name == "mattr":
            words = value if isinstance(value, list) else [value]
            shape = _FEATURE if name == "mattr" else _WORD
            if len(words) > _MOST_WORDS or not all(isinstance(word, str) and shape.fullmatch(word) for word in words):
                raise InvalidTarget(f"the target's {name} is no name that LLVM or CUDA has: {str(value)[:80]!r}")
        elif not (name.startswith(_DERIVED) and type(value) in (bool, int)):
            known = ", ".join(sorted({"host", "mattr", *_NAMES, *_RANGES}))
            raise InvalidTarget(f"the target sets {name!r}, which is not taken; a target may have {known}")


def _options_to_dict(text: str) -> dict[str, Any]:
    """Return ``llvm -mcpu=x -mattr=+a,+b -num-cores 2`` as the dictionary that TVM takes now."""
    words = text.replace("=", " ").split()
    options: dict[str, Any] = {"kind": words[0]}
    for key, value in zip(words[1::2], words[2::2], strict=True):
        name = key.lstrip("-")
        options[name] = value.split(",") if name in ("mattr", "keys") else int(value) if value.isdigit() else value
    return options


def _without_derived(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in fields.items() if k not in ("keys", "tag") and v not in ("", [], None)}
    return {k: _without_derived(v) if isinstance(v, dict) else v for k, v in kept.items()}


def instructions(target: Target) -> set[str]:
    """Return the instruction sets that code for an llvm target may use, in LLVM's names."""
    return {name for name in map(str, codegen.llvm_get_cpu_features(target)) if not name.startswith(_ADVICE)}
