"""Programs as text: TVMScript or TVM's JSON, given directly or by the path of a .py or .json file.

The text is sent as it stands: it is read on the service's side, never run here to be submitted.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

from loopwright import schemas
from loopwright.codegen.errors import last_line
from loopwright.codegen.syntax import parse
from loopwright.errors import UnsupportedModel
from loopwright.extras import require_tvm
from loopwright.frontends.dialect import translate
from loopwright.frontends.program import Program, detach
from loopwright.model import Model

ACCEPTS = "TVMScript text or the path of a .py file, TVM JSON text or the path of a .json file"
OPTIONS: frozenset[str] = frozenset()


def accepts(model: Any) -> bool:
    return isinstance(model, str | os.PathLike)


def to_payload(model: str | os.PathLike[str]) -> schemas.ModulePayload:
    text = _text(model)
    if not text.strip():
        name = os.fspath(model) if _is_path(model) else "the program"
        raise ValueError(f"{name} is empty; give TVMScript or TVM's JSON")
    return schemas.ModulePayload(format="tvm-json" if text.lstrip().startswith("{") else "tvmscript", data=text)


def to_program(source: Model) -> Program:
    tvm = require_tvm()
    payload = to_payload(source.model)
    if payload.format == "tvm-json":
        try:
            mod = tvm.ir.load_json(payload.data)
        except Exception as error:  # of many classes, some of C++
            reason = last_line(error)
            raise UnsupportedModel(f"this is no JSON of TVM ({reason}); write it by tvm.ir.save_json(mod)") from error
        return detach(mod)
    return detach(module_from_script(translate(payload.data).text))


def module_from_script(text: str) -> Any:
    """Return TVMScript as an IRModule. TVM's parser runs what it reads, as importing the file would: own code only.

    Import lines are passed over, since the parser takes definitions only and knows T, R and I by itself.

    Raises:
        UnsupportedModel: the text is no TVMScript, or the constants of the script are missing.
    """
    tvm = require_tvm()
    from loopwright.codegen.functions import as_module
    from loopwright.codegen.script import parse_script

    tree, lines = parse(text), text.splitlines()
    if _lacks_constants(tree):
        raise UnsupportedModel(
            "the constants of this TVMScript, in `metadata`, are missing; print the module with "
            "mod.script(show_meta=True), or give the module itself, or tvm.ir.save_json(mod)"
        )
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    try:
        return as_module(parse_script("\n".join(lines)))
    except (tvm.error.DiagnosticError, IndexError) as error:  # IndexError: nothing is defined
        raise UnsupportedModel(
            f"this is no TVMScript ({_reason(error)}); give a model that a Python script makes as script.py:NAME"
        ) from error


def _reason(error: Exception) -> str:
    """Return what TVM's parser refuses, and in which line."""
    text = str(error)
    if isinstance(error, IndexError):
        return "it defines no function"
    line = re.search(r"^ --> .*:(\d+):\d+$", text, re.MULTILINE)
    reason = text.partition("\n")[0].removeprefix("error: ")
    return reason if line is None else f"line {line[1]}: {reason}"


def _lacks_constants(tree: ast.Module) -> bool:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "metadata"]
    return bool(names) and not any(isinstance(name.ctx, ast.Store) for name in names)


def _is_path(model: str | os.PathLike[str]) -> bool:
    # A program has line breaks (or, as JSON, braces); a file name ends in .py or .json.
    return not isinstance(model, str) or ("\n" not in model and model.endswith((".py", ".json")))


def _text(model: str | os.PathLike[str]) -> str:
    if not _is_path(model):
        return str(model)
    try:
        return Path(model).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UnsupportedModel(
            f"{os.fspath(model)} is not text, and so neither TVMScript nor TVM's JSON; the files of PyTorch's programs "
            "end in .pt2, and those of ONNX in .onnx"
        ) from error
