"""Targets as users give them: what is sent of them, and short names for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def on_wire(target: Any) -> str | dict[str, Any]:
    """Return what is sent for a string, a dictionary or a ``tvm.target.Target``."""
    # A tvm Target prints itself as JSON; recognised without importing TVM.
    wire: str | dict[str, Any] = target if isinstance(target, str | dict) else json.loads(str(target))
    return wire


def as_text(target: Any) -> str:
    """Return a string as it is, and any other target as JSON with sorted keys."""
    wire = on_wire(target)
    return wire if isinstance(wire, str) else json.dumps(wire, sort_keys=True)


def tvm_target(target: Any) -> Any:
    """Return a ``tvm.target.Target``, or None for ``auto``, which only the service can resolve."""
    if isinstance(target, str) and target.strip() == "auto":
        return None
    from loopwright.codegen.target import target_from

    return target_from(target)


def short_names(targets: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name each target by its kind and model, ``llvm znver4``; all by their JSON if that would not tell them apart."""
    names = [_short_name(target) for target in targets]
    return names if len(set(names)) == len(names) else [json.dumps(target, sort_keys=True) for target in targets]


def _short_name(target: Mapping[str, Any]) -> str:
    models = (target.get(field) for field in ("tag", "model", "mcpu", "arch"))
    model = next((each for each in models if isinstance(each, str) and each not in ("", "unknown")), "")
    return f"{target.get('kind', 'unknown')} {model}".rstrip()
