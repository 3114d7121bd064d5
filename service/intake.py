"""The sandbox children's work on a submission: translate an earlier dialect of TVMScript, then parse the module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from loopwright.codegen.math_mode import MathMode
from loopwright.frontends.dialect import translate
from tuner.inspection import submission
from tuner.inspection.answers import Submission


def parse(
    fmt: str,
    data: str,
    target_json: str,
    shapes: submission.Shapes | list[submission.Shapes] | None,
    space: list[Any] | None,
    exact_math: bool,
    math: MathMode,
    unproven: bool,
) -> Iterator[Submission]:
    """Yield what `tuner.inspection.submission.parse` yields, with the translations from an earlier dialect."""
    notes: tuple[str, ...] = ()
    if fmt == "tvmscript":
        translation = translate(data)
        data, notes = translation.text, translation.notes
    for found in submission.parse(fmt, data, target_json, shapes, space, exact_math, math, unproven):
        yield replace(found, translated=notes)
