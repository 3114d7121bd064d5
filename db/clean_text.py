"""Text as both databases can store it."""

from __future__ import annotations


def clean_text(text: str) -> str:
    """Return the text as both databases can hold it.

    Messages of crashed processes may carry NUL (PostgreSQL refuses it) or lone surrogates (not UTF-8): each becomes
    U+FFFD.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "\ufffd")
