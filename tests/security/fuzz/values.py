"""Values that programs seldom expect: numbers at borders, types that there are not, texts that are no text."""

from __future__ import annotations

import random
from typing import Any

NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "255", "2147483647", "2147483648", "-2147483649", "4294967296",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" * 60,
    "1e400", "-1e400", "1e-400", "0.0", "-0.0", "0.1", "1e38", "3.5e38", "0x10", "0b1", "1_000", "1j", "float('nan')",
)  # fmt: skip
DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "uint64", "bool", "void", "handle",
    "float32x4", "float32x0", "float32x-1", "float32x65536", "float32xvscalex4", "int0", "int1", "int7", "int4",
    "uint1", "float8", "float8_e4m3fn", "float4_e2m1fn", "int99999", "float99999999999999999999", "custom[x]32", "",
    "float", "int", "string", "float32 ", "FLOAT32", "float32\x00", "\ud800",
)  # fmt: skip
TEXTS = (
    "", " ", "x", "main", "global_symbol", "tirx.noalias", "\x00", "\x1b[2J", "\u202e", "\u2028", "\ud800", "é",
    "a" * 300, "../../etc/passwd", "%s%n", "'; DROP TABLE jobs; --", "{}", "<script>", "\\", '"', "\n", "NaN",
    "\U0001d426ain",
)  # fmt: skip
JSON: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**40, 0.5, -0.0, 1e308, float("inf"),
    float("-inf"), float("nan"), [], {}, [[]], [None], [0], [[0, 1]], {"": None}, {"x": 1}, [{}, []],
)  # fmt: skip


def value(draw: random.Random) -> Any:
    """Return a JSON value."""
    kind = draw.randrange(10)
    if kind < 5:
        return draw.choice(JSON)
    if kind < 7:
        return draw.choice(TEXTS)
    if kind < 8:
        return draw.choice(DTYPES)
    if kind < 9:
        return draw.randrange(-3, 300)
    return nested(draw.choice((3, 30, 300)))


def nested(depth: int) -> Any:
    """Return lists in lists."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def altered_list(items: list[Any], draw: random.Random) -> None:
    """Delete, repeat, exchange or replace an item in place, or add one."""
    if not items:
        items.append(value(draw))
        return
    here, there = draw.randrange(len(items)), draw.randrange(len(items))
    match draw.randrange(6):
        case 0:
            del items[here]
        case 1:
            items.insert(there, items[here])
        case 2:
            items[here], items[there] = items[there], items[here]
        case 3:
            items[here] = value(draw)
        case 4:
            items.insert(here, value(draw))
        case _:
            del items[here:]


def altered(tree: Any, draw: random.Random) -> Any:
    """Return a JSON value with one change, at any depth; lists and objects are changed in place."""
    if isinstance(tree, list) and tree and draw.random() < 0.75:
        place = draw.randrange(len(tree))
        tree[place] = altered(tree[place], draw)
    elif isinstance(tree, list):
        altered_list(tree, draw)
    elif isinstance(tree, dict) and tree:
        name = draw.choice(list(tree))
        match draw.randrange(8):
            case 0:
                del tree[name]
            case 1:
                tree[draw.choice(TEXTS)] = tree.pop(name)
            case _:
                tree[name] = altered(tree[name], draw)
    elif isinstance(tree, int) and not isinstance(tree, bool) and draw.random() < 0.5:
        return tree + draw.choice((-1, 1, 2, -tree, 2**31, 2**62))
    else:
        return value(draw)
    return tree
