"""What the sandbox's children do with a submission: rewrite an earlier dialect in today's words, then take it apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loopwright.dialect import translate
from tuner import submission


def parse(
    fmt: str,
    data: str,
    target_json: str,
    shapes: submission.Shapes | list[submission.Shapes] | None,
    space: list[Any] | None,
) -> Iterator[dict[str, Any]]:
    """Yield what `tuner.submission.parse` yields; its notes begin with what was translated."""
    notes: tuple[str, ...] = ()
    if fmt == "tvmscript":
        translation = translate(data)
        data, notes = translation.text, translation.notes
    for found in submission.parse(fmt, data, target_json, shapes, space):
        yield {**found, "notes": [*notes, *found["notes"]]}
