"""How a trace and a built program say that a weight is packed once, before the calls. Imports no TVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PACKS = "meta_schedule.layout_rewrite_preproc"
"""TVM's annotation of a block that packs a weight."""
PACK = "pack"
"""The function of a built program that packs its first argument into its second one."""


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """The argument at position ``argument`` of a function is a packed tensor of this shape and dtype."""

    argument: int
    shape: tuple[int, ...]
    dtype: str


def packs_weight(trace: list[Any] | None) -> bool:
    """Return whether a trace ``[instructions, decisions]`` packs a weight once, so that no timed call contains it."""
    return trace is not None and any(kind == "Annotate" and attrs[0] == PACKS for kind, _, attrs, _ in trace[0])
