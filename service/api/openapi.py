"""Additions to FastAPI's schema of the REST interface: problems, and the meaning of each field."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from loopwright import schemas

_IN_PATHS = {
    "job_id": "Id of the job.",
    "name": "Name of the user.",
    "record_id": "Id of the record.",
    "token_id": "Id of the token.",
    "webhook_id": "Id of the webhook.",
    "worker_id": "Id of the worker, ``HOST/DEVICE``.",
    "workload_hash": "Digest of the function, which names the workload.",
}


def install(app: FastAPI) -> None:
    """Complete the app's OpenAPI schema, which is generated at the first request for it."""
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        schema = generated()
        models = schema["components"]["schemas"]
        # FastAPI adds the models of JSON answers by itself, and a problem has a media type of its own.
        models["Problem"] = schemas.Problem.model_json_schema()
        for operations in schema["paths"].values():
            for operation in operations.values():
                for parameter in operation.get("parameters", ()):
                    if parameter["in"] == "path":
                        parameter["description"] = _IN_PATHS[parameter["name"]]
        for name, model in models.items():
            _describe(model, getattr(schemas, name.partition("_")[0], None))
        return schema

    app.openapi = openapi  # type: ignore[method-assign]


def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a model, by field.

    Pydantic can read them when a class is made (``use_attribute_docstrings``): that would triple the time for which
    each start of the command line imports the schemas.
    """
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= _texts(_classes(base.__module__)[base.__name__.partition("[")[0]])
    return {field: text for field, text in texts.items() if field in model.model_fields}


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts


def _describe(schema: dict[str, Any], model: type[BaseModel] | None) -> None:
    """Add the texts to the schema of a model; None: one that FastAPI made."""
    if "description" in schema:
        schema["description"] = _in_json(schema["description"])
    for field, text in {} if model is None else field_texts(model).items():
        schema["properties"][field]["description"] = _in_json(text)


def _in_json(text: str) -> str:
    """Name values as JSON has them: docstrings have Python's names."""
    text = re.sub(r"\bNone\b", "null", " ".join(text.split()))
    return re.sub(r"\b(True|False)\b", lambda found: found[0].lower(), text)
