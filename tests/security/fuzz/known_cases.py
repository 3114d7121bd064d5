"""Inputs that fuzzing once found to be answered wrongly, cut down to what matters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from db.exchange.json_pair import pack
from tests.security.fuzz.inputs import Request
from tests.security.fuzz.seeds import Seeds
from tests.support.played_fleet import TARGET


def _record(seeds: Seeds, *steps: list[Any]) -> Request:
    """The record of a product with these instructions as its trace."""
    product = seeds.scheduled[0]
    record = [0, [[list(steps), []], [1e-3], json.loads(TARGET), product.args]]
    pair = {
        "database_workload": json.dumps(product.workload_line),
        "database_tuning_record": json.dumps(record),
    }
    return Request("POST", "/api/v1/records/import", pack(pair))


def _half_a_character(seeds: Seeds) -> Request:
    """The report of the import could not name the instruction."""
    return _record(seeds, ["\ud800", [], [], []])


def _not_compiled(seeds: Seeds) -> Request:
    """The trace applies, and TVM cannot compile what it makes: a record's assembly was a fault of the service."""
    block = ["GetSBlock", [], ["C", "main"], ["b0"]]
    return _record(seeds, block, ["Annotate", ["b0", 0.5], ["buffer_dim_align"], []])


KNOWN: dict[str, Callable[[Seeds], Request]] = {
    "half a character in a trace": _half_a_character,
    "a record that cannot be compiled": _not_compiled,
}
