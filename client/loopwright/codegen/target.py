"""Targets: every way to write one, and the one form that is stored."""

from __future__ import annotations

import json
from typing import Any

from tvm.target import Target, codegen

from loopwright.codegen.errors import InvalidTarget, last_line
from loopwright.codegen.serialization import plain_json

KINDS = ("llvm", "cuda")
"""The kinds of targets that are tuned."""

_ASSUMED: dict[str, dict[str, Any]] = {
    "llvm": {"num-cores": 1},
    "cuda": {"max_threads_per_block": 1024, "max_shared_memory_per_block": 49152},
}
"""Attributes that TVM's schedule rules read and that a target may leave out. The limits hold for every GPU that CUDA
supports."""


def target_from(target: str | dict[str, Any] | Target) -> Target:
    """Return a Target from a Target, a kind, a tag, JSON text, a dictionary, or the old ``llvm -mcpu=…`` form.

    Raises:
        InvalidTarget: TVM does not know it, or it is of a kind that is not tuned.
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
    return parsed


def canonical_target(target: Target) -> str:
    """Return the target as JSON text with sorted keys, without the fields that TVM derives by itself."""
    return json.dumps(_without_derived(plain_json(target.export())), sort_keys=True)


def with_assumed_attributes(target: Target) -> Target:
    """Return the target with the attributes that TVM's schedule rules need and that it leaves out."""
    assumed = _ASSUMED[target.kind.name]
    if all(key in target.attrs for key in assumed):
        return target
    return Target(assumed | json.loads(canonical_target(target)))


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
        return Target(value)
    except Exception as error:
        raise InvalidTarget(
            f"TVM does not know the target {text_or_dict!r}: {last_line(error)}. "
            "Use auto, llvm, cuda, options such as 'llvm -mcpu=znver4', a tag such as nvidia/nvidia-h100, or JSON"
        ) from error


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
