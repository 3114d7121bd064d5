"""The errors of CUDA's compiler for code that it refuses."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.codegen.errors import CodeRefused

_LOG = re.compile(r"NVRTC compilation failed|Compilation error:")
"""Begins the compiler's log in the messages of TVM, from NVRTC and from nvcc."""
_ERROR = re.compile(r"(?:\b(?:fatal )?error\s*:|\berror #\S+:)\s*(?P<message>.*)")
_SHOWN = 3
_CHARACTERS = 140
"""Of each error, at most: users are shown the last 500 characters of a failure's message."""


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """Raise CodeRefused, with the errors of CUDA's compiler, in place of TVM's error with the compiler's whole log.

    The log has warnings of CUDA's own headers and, from nvcc, the whole source before it.
    """
    try:
        yield
    except Exception as error:
        errors = compiler_errors(str(error))
        if not errors:
            raise
        raise CodeRefused(f"CUDA's compiler refuses the code: {errors}") from error


def compiler_errors(text: str) -> str:
    """Return the errors in the log of CUDA's compiler within a message of TVM; "" if there is no log, or no error."""
    begin = _LOG.search(text)
    found = _ERROR.finditer(text, begin.end()) if begin else ()
    messages = list(dict.fromkeys(textwrap.shorten(each["message"].strip(" \0"), _CHARACTERS) for each in found))
    more = f"; and {len(messages) - _SHOWN} more" if len(messages) > _SHOWN else ""
    return "; ".join(messages[:_SHOWN]) + more
