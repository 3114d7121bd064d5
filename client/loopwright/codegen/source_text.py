"""The places that a function comes from, as one text. This file does not use TVM."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

_SHOWN = 6
"""Alternatives of a part that are written out."""


def shortened(sources: Iterable[str]) -> str:
    """Return several sources as one text, in which the parts that differ are in braces; empty without sources.

    ``layers.0.fc`` and ``layers.1.fc`` become ``layers.{0,1}.fc``, those of twelve layers ``layers.{0..11}.fc``.
    """
    groups: dict[tuple[str | int, ...], list[list[str]]] = defaultdict(list)
    for source in sources:
        parts = re.split(r"([./:])", source)
        groups[len(parts), *parts[1::2]].append(parts)
    return ", ".join("".join(map(_braced, zip(*group, strict=True))) for group in groups.values())


def _braced(parts: Sequence[str]) -> str:
    different = list(dict.fromkeys(parts))
    if len(different) == 1:
        return different[0]
    if all(each.isdecimal() for each in different):
        numbers = sorted(map(int, different))
        if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
            return f"{{{numbers[0]}..{numbers[-1]}}}"
        different = list(map(str, numbers))
    more = f",… {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    return f"{{{','.join(different[:_SHOWN])}{more}}}"
