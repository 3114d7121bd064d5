"""A model in a Python script of the user's, as ``script.py:NAME`` names it."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from typing import Any

import typer

from loopwright.model import Model


def model_named(script: Path, name: str) -> Model:
    """Run a script, and return the model of a name in it: a value, or what a function without arguments returns.

    A plain model has the script's ``example_inputs``, if there are any.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the script has nothing of that name.
        typer.Exit: the script failed; its traceback is printed.
    """
    names = _run(script)
    if name not in names:
        defined = ", ".join(each for each in names if not each.startswith("_")) or "nothing"
        raise ValueError(f"{script} defines no {name!r}, but {defined}")
    found = names[name]
    if inspect.isfunction(found):
        found = _guarded(found)
    return found if isinstance(found, Model) else Model(found, example_inputs=names.get("example_inputs"))


def _run(script: Path) -> dict[str, Any]:
    """Return the names of a script that was run, as ``import`` runs it: its folder is on the path."""
    if not script.is_file():
        raise FileNotFoundError(2, "No such file", str(script))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(script.resolve().parent))
    # Where pickle, dataclasses and torch.export look for what a class refers to.
    sys.modules.setdefault(script.stem, module)
    _guarded(spec.loader.exec_module, module)
    return vars(module)


def _guarded(function: Any, *arguments: Any) -> Any:
    """Call what the user wrote. Exit with status 2 after its own traceback if it raises."""
    try:
        return function(*arguments)
    except Exception:
        traceback.print_exc()
        raise typer.Exit(2) from None
