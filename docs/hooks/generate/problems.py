"""List the problems that the API answers with, from the service's own list."""

from __future__ import annotations

from http import HTTPStatus
from itertools import groupby

from docs.hooks.generate.tables import code, table
from service.problem_types import PROBLEM_TYPES, URN


def problem_page() -> str:
    """Return a section for each status, with its types."""
    parts = []
    for status, types in groupby(PROBLEM_TYPES, key=lambda each: each.status):
        parts += [f"## Status {status}", f"{HTTPStatus(status).phrase}."]
        rows = [(code(URN + each.kind), each.when, each.advice) for each in types]
        parts.append(table(("type", "when", "what to do"), rows))
    return "\n\n".join(parts)
