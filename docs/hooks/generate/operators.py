"""List the operators of a framework, from the results of the tests against the framework itself."""

from __future__ import annotations

import json
from pathlib import Path

from docs.hooks.generate.tables import code, table

RESULTS = Path(__file__).parents[1] / "operators"


def operator_page(framework: str) -> str:
    """Return one table of a framework's operators, and how many of their cases pass, are refused and differ."""
    results = json.loads((RESULTS / f"{framework}.json").read_text())
    rows = [
        (code(name), *(str(row[kind] or "") for kind in ("pass", "refused", "different")))
        for name, row in sorted(results.items(), key=lambda each: each[0].lower())
    ]
    return table(("operator", "pass", "refused", "different"), rows)
