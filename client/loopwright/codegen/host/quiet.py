"""Standard error without the lines of a library that say nothing to users."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator

POWERS = b"Warning: Detected pow(x, y) where y >= 3"
"""In the lines that TVM writes for each power that it lowers."""
SCOPES = b"Warning: Scope "
"""In the lines that TVM writes for each scope of memory that it saves."""

_ALONE = threading.Lock()


@contextlib.contextmanager
def without_lines(part: bytes) -> Iterator[None]:
    """Keep lines that contain ``part`` out of standard error; the others appear at the end.

    The library writes to the descriptor, so that it is the descriptor that is replaced.
    """
    with _ALONE, tempfile.TemporaryFile() as written:
        try:
            stderr = os.dup(2)
        except OSError:  # there is no standard error
            yield
            return
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            os.write(2, b"".join(line for line in written if part not in line))
