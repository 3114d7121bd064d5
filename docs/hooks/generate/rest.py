"""Describe the endpoints of the REST interface and their objects in Markdown, from the OpenAPI schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.hooks.generate.tables import code, table

ROOT = Path(__file__).parents[3]
SCHEMA: dict[str, Any] = json.loads((ROOT / "service" / "dashboard" / "openapi.json").read_text())
MODELS: dict[str, Any] = SCHEMA["components"]["schemas"]
EXAMPLES: dict[str, dict[str, Any]] = json.loads((ROOT / "docs" / "reference" / "rest" / "examples.json").read_text())
_REF = "#/components/schemas/"
_PAGE = "Page_"
_RANGES = (
    ("minimum", "maximum", "{}"),
    ("minLength", "maxLength", "{} characters"),
    ("minItems", "maxItems", "{} items"),
    ("minProperties", "maxProperties", "{} names"),
)
_MARKS = re.compile(r"(?<!`)`([A-Za-z.]+)`(?!`)|``(.+?)``")


def tag_page(tag: str) -> str:
    """Return the endpoints with a tag, then the objects that no earlier tag has."""
    parts = [_operation(method, path, operation) for method, path, operation in operations(tag)]
    owned = [name for name, owner in OWNERS.items() if owner == tag and not name.startswith(_PAGE)]
    parts += ["## Objects", *(_model(name) for name in sorted(owned))] if owned else []
    return "\n\n".join(parts)


def operations(tag: str | None = None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and operation of each endpoint (with a tag)."""
    for path, methods in SCHEMA["paths"].items():
        for method, operation in methods.items():
            if tag is None or tag in operation["tags"]:
                yield method.upper(), path, operation


def _owners() -> dict[str, str]:
    """Return on the page of which tag each object is described: of the first that uses it."""
    owners: dict[str, str] = {}

    def visit(node: Any, tag: str) -> None:
        if isinstance(node, list):
            for each in node:
                visit(each, tag)
        elif isinstance(node, dict):
            name = str(node.get("$ref", "")).removeprefix(_REF)
            # The values of an enumeration stand where it is used.
            if name and name not in owners and "enum" not in MODELS[name]:
                owners[name] = tag
                visit(MODELS[name], tag)
            for each in node.values():
                visit(each, tag)

    for _, _, operation in operations():
        visit(operation, operation["tags"][0])
    return owners


OWNERS = _owners()


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"## {method} {path}", _text(operation["description"])]
    right = operation.get("x-right")
    parts.append(f"Needs the right `{right}`." if right else "Needs no token.")
    if parameters := operation.get("parameters"):
        rows = [
            (
                code(each["name"]),
                each["in"],
                _type(each["schema"]),
                _required(each.get("required", False), each["schema"]),
                _text(each["description"]),
            )
            for each in parameters
        ]
        parts.append(table(("parameter", "in", "type", "required", "meaning"), rows))
    if body := operation.get("requestBody"):
        parts.append(f"**Body**: {_content(body['content'])}")
    answers = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
    parts += [f"**Answer** {status}: {_content(answer.get('content', {}))}" for status, answer in answers.items()]
    refusals = [status for status in sorted(operation["responses"]) if status not in answers]
    parts.append(f"**Errors**: {', '.join(f'[{each}](../errors.md#status-{each})' for each in refusals)}.")
    parts += _examples(EXAMPLES.get(f"{method} {path}", {}))
    return "\n\n".join(parts)


def _examples(example: dict[str, Any]) -> Iterator[str]:
    for part in ("body", "answer"):
        if part in example:
            shown = json.dumps(example[part], indent=2, ensure_ascii=False)
            # Both the site and forges fold this.
            yield (
                f'<details class="example" markdown="1">\n<summary>Example of the {part}</summary>\n\n'
                f"```json\n{shown}\n```\n\n</details>"
            )


def _content(content: dict[str, Any]) -> str:
    if not content:
        return "without a body."
    shown = []
    for media, each in content.items():
        schema = each.get("schema", {})
        is_file = schema.get("format") == "binary" or schema == {"type": "string"}
        shown.append(f"`{media}`" if is_file or media != "application/json" else _type(schema))
    return f"{' or '.join(shown)}."


def _model(name: str) -> str:
    model = MODELS[name]
    parts = [f"### {name}"]
    if "description" in model:
        parts.append(_text(model["description"]))
    required = model.get("required", ())
    rows = [
        (
            code(field),
            _type(schema),
            _required(field in required, schema),
            _text(schema["description"]),
        )
        for field, schema in model["properties"].items()
    ]
    parts.append(table(("field", "type", "required", "meaning"), rows))
    return "\n\n".join(parts)


def _type(schema: dict[str, Any]) -> str:
    """Return a type in words, with its bounds, and a link for an object."""
    if ref := schema.get("$ref"):
        name = ref.removeprefix(_REF)
        if name.startswith(_PAGE):
            return f"[page](../../rest.md#pages) of {_link(name.removeprefix(_PAGE).strip('_'))}"
        return _type(MODELS[name]) if "enum" in MODELS[name] else _link(name)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "const" in schema:
        return code(json.dumps(schema["const"], ensure_ascii=False))
    if "enum" in schema:
        return ", ".join(code(each) for each in schema["enum"])
    kind = schema.get("type", "any JSON")
    if kind == "array":
        name = f"array of {_type(schema.get('items', {}))}"
    elif kind == "object":
        values = schema.get("additionalProperties")
        name = f"object of {_type(values)}" if isinstance(values, dict) and values else "object"
    else:
        name = "time" if schema.get("format") == "date-time" else str(kind)
    bounds = list(_bounds(schema))
    return f"{name} ({', '.join(bounds)})" if bounds else name


def _bounds(schema: dict[str, Any]) -> Iterator[str]:
    for low, high, text in _RANGES:
        if low in schema and high in schema:
            yield text.format(f"{_number(schema[low])} to {_number(schema[high])}")
        elif schema.get(low) == 1 and text != "{}":
            yield "not empty"
        elif low in schema:
            yield text.format(f"at least {_number(schema[low])}")
        elif high in schema:
            yield text.format(f"at most {_number(schema[high])}")
    if "exclusiveMinimum" in schema:
        yield f"over {_number(schema['exclusiveMinimum'])}"
    if "exclusiveMaximum" in schema:
        yield f"below {_number(schema['exclusiveMaximum'])}"
    if "pattern" in schema:
        yield f"matches {code(schema['pattern'])}"


def _number(value: float) -> str:
    return f"{int(value)}" if value == int(value) else f"{value}"


def _link(model: str) -> str:
    return f"[{model}]({OWNERS[model]}.md#{model.lower()})"


def _required(required: bool, schema: dict[str, Any]) -> str:
    if required:
        return "yes"
    default = schema.get("default")
    return "no" if default is None else f"no; {code(json.dumps(default, ensure_ascii=False))}"


def _text(text: str) -> str:
    """Return what a docstring says, whose single and double backticks are code."""
    return _MARKS.sub(lambda mark: code(mark[1] or mark[2]), text)
