"""Where a node of an exported program comes from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LIBRARIES = frozenset({"torch", "loopwright"})
"""Folders of code that is not the model's own."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def source(fx_node: Any) -> str:
    """Return the path of the module that computes a node, as ``model.get_submodule`` takes it.

    What the outermost module computes itself has the last line of the model's own code that PyTorch has noted: file and
    line, ``model.py:14``. The text is empty if PyTorch has noted neither.
    """
    modules = list((fx_node.meta.get("nn_module_stack") or {}).values())
    if modules and modules[-1][0]:
        return str(modules[-1][0])
    frames = [(Path(file), line) for file, line in _FRAME.findall(fx_node.meta.get("stack_trace") or "")]
    own = [f"{file.name}:{line}" for file, line in frames if _LIBRARIES.isdisjoint(file.parts)]
    return own[-1] if own else ""
