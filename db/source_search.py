"""Search by the places where models call functions."""

from __future__ import annotations

import json
import re

from sqlalchemy import ColumnElement, Text, cast, func

from db.models import Task

_ALTERNATIVES = re.compile(r"\{[^{}]*\}")
"""As `loopwright.codegen.source_text` writes the parts in which places differ."""


def is_called_at(text: str) -> ColumnElement[bool]:
    """Return the condition that a task has a source with this text in it, in any case.

    Braces match any text, so that several sources are also found by the one text that they are shown as.
    """
    # The column is a JSON list of strings: what is sought is within quotation marks, and escaped as JSON.
    parts = _ALTERNATIVES.split(json.dumps(text)[1:-1].lower())
    pattern = "%".join(re.sub("[!%_]", r"!\g<0>", part) for part in parts)
    return func.lower(cast(Task.sources, Text)).like(f'%"%{pattern}%"%', escape="!")
