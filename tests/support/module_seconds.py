"""How long the tests of each module took: added up from pytest's reports, and printed as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest


@dataclass
class Module:
    """``seconds`` of wall time, with set-up and teardown: that of a shared fixture counts for its first user."""

    tests: set[str] = field(default_factory=set)
    seconds: float = 0.0


def table(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return a line for each module, the slowest first, after one for all of them."""
    modules: dict[str, Module] = {}
    for report in reports:
        module = modules.setdefault(report.nodeid.split("::")[0], Module())
        module.tests.add(report.nodeid)
        module.seconds += report.duration
    total = Module(
        set().union(*(module.tests for module in modules.values())), sum(module.seconds for module in modules.values())
    )
    ranked = sorted(modules.items(), key=lambda item: (-round(item[1].seconds, 1), item[0]))
    lines = [f"{module.seconds:8.1f} {len(module.tests):6}  {name}" for name, module in [("all", total), *ranked]]
    return [f"{'seconds':>8} {'tests':>6}  module", *lines]
