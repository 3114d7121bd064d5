"""Syntax trees of Python text, whatever other threads parse. This file does not use TVM."""

from __future__ import annotations

import ast
import gc
import threading

_parsing = threading.Lock()


def parse(text: str) -> ast.Module:
    """Return what `ast.parse` returns, without a switch to another thread meanwhile.

    CPython 3.11 and 3.12 count how deep a tree is in one place for all threads, and raise SystemError if another one
    has parsed before a tree is done. Threads switch there if garbage is collected, which can run Python code.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _parsing:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return ast.parse(text)
        finally:
            if was_enabled:
                gc.enable()
