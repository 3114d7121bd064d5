"""Long texts as they are stored, compressed by zstd: modules in a tenth of their size, traces in a fifteenth.

A trace is a few kilobytes of JSON, most of it the same in all traces of the rules that made it. The dictionary beside
this file has what they have in common; it was trained on the design spaces (`scripts/write_trace_dictionary.py`). Every
stored trace needs it, so that it never changes without a migration.
"""

from __future__ import annotations

from pathlib import Path

import zstandard

LEVEL = 12
"""Of zstd. Level 19 saves 4 % more and takes ten times as long."""
HEAD_BYTES = 18
"""Of zstd's frames at most, before what is compressed."""
_DICTIONARY_FILE = Path(__file__).with_name("traces.zdict")
_MAX_BYTES = 2**28
"""Of a text. Bodies of requests are far smaller."""

_dictionary: zstandard.ZstdCompressionDict | None = None


def compress(text: str) -> bytes:
    # A compressor may not be used by two threads at a time, and takes microseconds to make.
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(text.encode())


def decompress(data: bytes) -> str:
    """Return the text. Raises zstandard.ZstdError for what `compress` did not return."""
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=_MAX_BYTES).decode()


def size(head: bytes) -> int:
    """Return the size in bytes of the text of which the first `HEAD_BYTES` of what `compress` returned are given."""
    return int(zstandard.frame_content_size(head))


def compress_trace(text: str) -> bytes:
    compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=_loaded(), write_checksum=True)
    return compressor.compress(text.encode())


def decompress_trace(data: bytes) -> str:
    """Return the text. Raises zstandard.ZstdError for what `compress_trace` did not return."""
    decompressor = zstandard.ZstdDecompressor(dict_data=_loaded())
    return decompressor.decompress(data, max_output_size=_MAX_BYTES).decode()


def _loaded() -> zstandard.ZstdCompressionDict:
    global _dictionary
    if _dictionary is None:
        dictionary = zstandard.ZstdCompressionDict(_DICTIONARY_FILE.read_bytes())
        dictionary.precompute_compress(level=LEVEL)
        _dictionary = dictionary
    return _dictionary
