"""Names that users and programs give: short, and of characters that a terminal or a page shows as they are."""

from __future__ import annotations

import re

LONGEST = 200
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls of terminals (C0, C1), of the direction of writing, line separators, and halves of characters."""


def visible(text: str) -> str:
    """Return a text in which no control reaches a terminal, for names that were stored before they were checked."""
    return _CONTROLS.sub("\ufffd", text)


def complaint(text: str) -> str | None:
    """Return what is wrong with a name, in words for the user; None if it can be shown as it is."""
    if not 1 <= len(text) <= LONGEST:
        return f"a name has 1 to {LONGEST} characters, and this one has {len(text)}"
    if (found := _CONTROLS.search(text)) is not None:
        return f"a name has no control characters, and this one has {found.group()!a} after {found.start()}"
    return None
