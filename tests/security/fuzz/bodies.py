"""Bodies of all endpoints that take JSON, with changes: each is text, which may be no JSON that a library writes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.security.fuzz.inputs import Request
from tests.security.fuzz.values import NUMBERS, TEXTS, value
from tests.support.programs import product

_HASH = "0" * 32
_PLACE = "a place in a body that is replaced"
_ENGINE = {
    "name": "torch", "title": "PyTorch", "versions": {"torch": "2.13.0"}, "setting": None, "note": "", "us": 12.5,
    "run_secs": [[1.2e-5, 1.3e-5]], "ratio": {"value": 1.1, "low": 1.0, "high": 1.2}, "error": 0.0,
    "compile_seconds": 1.5, "peak_mb": 100.0, "failure": None, "install": None,
}  # fmt: skip
_JOB: dict[str, Any] = {
    "module": {"format": "tvmscript", "data": product(4, 8, 4)},
    "target": "auto",
    "name": "a product",
    "seed": 1,
    "priority": 1,
    "budget": {"max_trials": 4, "max_seconds": 10.0, "max_device_seconds": 10.0, "target_latency_us": 0.1},
    "space": None,
    "shapes": {},
    "visibility": "private",
    "exact_math": False,
    "math": "fp32",
    "labels": {"team": "vision"},
}
_GATE = {"against": [{"name": "main", "workload_hash": _HASH, "weight": 1, "record_id": _HASH}], "max_slowdown": 0.03}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/v1/jobs"): _JOB,
    ("POST", "/api/v1/jobs/preview"): _JOB,
    ("POST", "/api/v1/jobs/{job_id}/resubmit"): {"budget": {"max_trials": 4}, "seed": 2, "force": True},
    ("PATCH", "/api/v1/jobs/{job_id}"): {"tags": ["nightly", "resnet"], "description": "the last layer"},
    ("PUT", "/api/v1/jobs/{job_id}/comparison"): {
        "machine": "a machine",
        "threads": 2,
        "precision": "float32",
        "tolerance": 1e-3,
        "reference": "PyTorch",
        "engines": [_ENGINE, _ENGINE | {"name": "loopwright", "ratio": None}],
    },
    ("POST", "/api/v1/workloads/lookup"): {"functions": [_HASH, "f" * 32], "target": "auto", "modules": True},
    ("POST", "/api/v1/workloads/lookup/records"): {"functions": [_HASH, "f" * 32], "target": "auto", "imported": True},
    ("POST", "/api/v1/rechecks"): {"workloads": [_HASH], "target": "auto"},
    ("POST", "/api/v1/tokens"): {"name": "a token", "scope": "read", "days": 3, "user": None},
    ("POST", "/api/v1/guest-links"): {"days": 2},
    ("POST", "/api/v1/users"): {"name": "ada", "role": "read", "quota": {"active_jobs": 1, "daily_bytes": 2**20}},
    ("PATCH", "/api/v1/users/{name}"): {"role": "submit", "quota": {"daily_device_seconds": 9.5}, "disabled": False},
    ("POST", "/api/v1/webhooks"): {"url": "https://example.org/hook", "events": ["job.finished", "worker.lost"]},
}
"""A body that is taken, or refused for what it asks for alone, by method and path of each endpoint."""
_RARE = {("POST", "/api/v1/jobs"): _JOB | {"gate": _GATE}}
"""Another one, which is always refused: there is no such record."""


def request(names: Mapping[str, str], endpoint: tuple[str, str], seed: int, number: int) -> Request:
    """Return the request of that number to an endpoint; ``names`` are values of the parameters of paths."""
    method, path = endpoint
    draw = random.Random(f"{endpoint} {seed} {number}")
    body = BODIES[endpoint]
    text = json.dumps(_RARE.get(endpoint, body) if draw.random() < 0.2 else body)
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3)) if number else 0):
        text = draw.choice(_CHANGES)(text, draw)
    return Request(method, path.format_map(names), text.encode(errors="surrogatepass"))


def _replaced(text: str, draw: random.Random) -> str:
    """Replace a value at any depth by text, which need not be a value."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):  # another change has seen to that
        return text
    holders = list(_holders(tree))
    if not holders:
        return _raw(draw)
    holder = draw.choice(holders)
    holder[draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))] = _PLACE
    return json.dumps(tree).replace(json.dumps(_PLACE), _raw(draw))


def _renamed(text: str, draw: random.Random) -> str:
    """Leave a name out, add one, or have it twice."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return text
    objects = [holder for holder in _holders(tree) if isinstance(holder, dict)]
    if not objects:
        return text
    holder = draw.choice(objects)
    name = draw.choice(list(holder))
    match draw.randrange(4):
        case 0:
            del holder[name]
        case 1:
            holder[draw.choice(TEXTS)] = holder.pop(name)
        case 2:
            holder[draw.choice(TEXTS)] = value(draw)
        case _:
            holder[_PLACE] = 0
            twice = f"{json.dumps(name)}: {_raw(draw)}"
            return json.dumps(tree).replace(f"{json.dumps(_PLACE)}: 0", twice)
    return json.dumps(tree)


def _broken(text: str, draw: random.Random) -> str:
    """Cut the text off, put something in between, or wrap it up."""
    place = draw.randrange(len(text) + 1)
    match draw.randrange(4):
        case 0:
            return text[:place]
        case 1:
            return (
                text[:place] + draw.choice(("\x00", "\ufeff", '"', "\\", ",", "}", "]", "\udc80", "\n")) + text[place:]
            )
        case 2:
            return f"[{text}]"
        case _:
            return text + draw.choice((text, " ", "\x00", "]", "//"))


def _holders(tree: Any) -> list[Any]:
    """Return the objects and lists in a value that have something in them."""
    found = [tree] if isinstance(tree, dict | list) and tree else []
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return found + [holder for each in inner for holder in _holders(each)]


def _raw(draw: random.Random) -> str:
    return draw.choice(_RAW)(draw)


_RAW: tuple[Callable[[random.Random], str], ...] = (
    lambda draw: json.dumps(value(draw)),
    lambda draw: draw.choice(NUMBERS),
    lambda draw: draw.choice(
        ("NaN", "Infinity", "-Infinity", "1e400", "-0", "1E+5000", "0" * 30, "9" * 5_000, "1.", "")
    ),
    lambda draw: draw.choice(('"\\ud800"', '"\\udc00\\ud800"', '"\\x"', '"\\u00"')),
    lambda draw: json.dumps(draw.choice(("x", "é", "\x00", "\U0001d426")) * draw.choice((200, 10_000, 1_000_000))),
    lambda draw: "[" * (depth := draw.choice((5, 60, 65, 100_000))) + "]" * depth,
    lambda draw: '{"a":' * (depth := draw.choice((5, 60, 65, 10_000))) + "1" + "}" * depth,
    lambda draw: "[" + ",".join([draw.choice(('""', "0", "null", "[]", "{}", f'"{_HASH}"'))] * 100_000) + "]",
    lambda draw: (
        "{" + ",".join(f'"{"x" * (number % 7)}{number}":1' for number in range(draw.choice((300, 24_000)))) + "}"
    ),
)
"""Texts in place of a value."""
_CHANGES = (_replaced, _replaced, _replaced, _renamed, _renamed, _broken)
