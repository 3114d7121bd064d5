"""The OpenAPI schema says what everything means, and what a request needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from loopwright import schemas
from service.api.openapi import field_texts
from tests.support.openapi_document import openapi_document

SCHEMA: dict[str, Any] = openapi_document()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
}


def undescribed() -> Iterator[str]:
    for name, model in SCHEMA["components"]["schemas"].items():
        for field, schema in model.get("properties", {}).items():
            if not schema.get("description"):
                yield f"{name}.{field}"
    for name, operation in OPERATIONS.items():
        if not operation.get("description"):
            yield name
        for parameter in operation.get("parameters", ()):
            if not parameter.get("description"):
                yield f"{name}: {parameter['name']}"


def test_every_endpoint_parameter_and_field_has_a_description() -> None:
    assert len(OPERATIONS) > 50
    assert list(undescribed()) == []


def test_a_field_is_described_by_the_docstring_below_it_as_json_has_its_values() -> None:
    assert field_texts(schemas.TrialFinished)["number"] == "Order within the task, from 1; 0 is the baseline."
    assert "None until" in field_texts(schemas.Trial)["finished_at"]
    described = SCHEMA["components"]["schemas"]["Trial"]["properties"]["finished_at"]["description"]
    assert "null until" in described


@pytest.mark.parametrize("name", [name for name in OPERATIONS if "/api/v1/" in name])
def test_an_endpoint_below_api_names_the_right_that_it_needs(name: str) -> None:
    assert OPERATIONS[name]["x-right"] in get_args(schemas.Right)
