"""Labels of workers, such as ``rack=a``: what a host is started with, and what a job may ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from loopwright.codegen.errors import InvalidLabel

MOST = 16
"""Labels of a worker or a job. Not tuned."""
WORD = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
"""A key or a value: what Ray takes of its nodes' labels, but keys without a prefix."""


def parse(texts: Iterable[str]) -> dict[str, str]:
    """Return labels from texts ``KEY=VALUE``. Raises InvalidLabel for other texts, and for a key that comes twice."""
    labels: dict[str, str] = {}
    for text in texts:
        match = re.fullmatch(f"({WORD})=({WORD})", text)
        if match is None:
            raise InvalidLabel(
                f"{text!a} is no label: give KEY=VALUE, each of up to 63 letters, digits, '-', '_' and '.', with a "
                "letter or digit at both ends"
            )
        if match[1] in labels:
            raise InvalidLabel(f"the label {match[1]} is given twice")
        labels[match[1]] = match[2]
    if len(labels) > MOST:
        raise InvalidLabel(f"{MOST} labels are the limit, and {len(labels)} are given")
    return labels


def text(labels: Mapping[str, str]) -> str:
    """Return labels as ``KEY=VALUE`` with commas between, by key."""
    return ", ".join(f"{key}={labels[key]}" for key in sorted(labels))


def matches(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether a worker with ``labels`` has all labels of ``wanted``."""
    return wanted.items() <= labels.items()
