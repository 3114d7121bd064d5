"""The reference has everything that can be called, set or answered, and what it shows is true."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
import jsonschema
import pytest
from typer.core import TyperGroup
from typer.main import get_command

import loopwright
from docs.hooks.generate.operators import operator_page
from docs.hooks.reference import filled
from loopwright.cli import app
from loopwright.schemas import FailureKind, JobState, TaskState, TrialState
from service.problem_types import PROBLEM_TYPES
from tests.unit.docs.documents import ROOT

SCHEMA: dict[str, Any] = json.loads((ROOT / "service/dashboard/openapi.json").read_text())
EXAMPLES: dict[str, dict[str, Any]] = json.loads((ROOT / "docs/reference/rest/examples.json").read_text())
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
}
EXPORTED = griffe.load("loopwright", search_paths=[ROOT / "client"])
KINDS = {each.kind: each.status for each in PROBLEM_TYPES}


@pytest.mark.parametrize("page", sorted((ROOT / "docs/reference").rglob("*.md")), ids=lambda page: page.stem)
def test_a_page_in_the_repository_says_what_the_code_says(page: Path) -> None:
    assert page.read_text() == filled(page.read_text()), "run scripts/reference"
    for empty in re.findall(r"<!-- reference: .* -->\s*<!-- end of reference -->", page.read_text()):
        raise AssertionError(empty)


def test_the_operators_of_each_framework_are_listed_with_their_outcomes() -> None:
    page = (ROOT / "docs/reference/operators.md").read_text()
    for framework in re.findall(r"<!-- reference: operators (\w+) -->", page):
        assert re.search(r"^\| `\S+` \| \d+ \|", operator_page(framework), re.MULTILINE)


def test_the_site_is_built_without_tvm_ray_and_pytorch() -> None:
    code = "import docs.hooks.reference, sys; print([*{'tvm', 'ray', 'torch'} & set(sys.modules)])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def public(value: griffe.Object) -> Iterator[griffe.Object]:
    """An exported class or function, and what the page of a class shows."""
    yield value
    for name, member in value.members.items() if value.is_class else ():
        if not name.startswith("_") and name != "of" and not member.is_alias:
            assert isinstance(member, griffe.Object)
            yield member


@pytest.mark.parametrize("name", sorted(set(loopwright.__all__) - {"__version__"}))
def test_what_the_package_exports_is_documented_with_all_arguments(name: str) -> None:
    for each in public(EXPORTED[f"{getattr(loopwright, name).__module__.removeprefix('loopwright.')}.{name}"]):
        assert each.docstring is not None, each.path
        if isinstance(each, griffe.Function):
            sections = each.docstring.parse("google")
            told = {
                argument.name
                for part in sections
                if isinstance(part, griffe.DocstringSectionParameters)
                for argument in part.value
            }
            given = {argument.name for argument in each.parameters} - {"cls", "self"}
            assert given <= told, each.path


def parameters(command: Any, name: str) -> Iterator[tuple[str, str | None]]:
    """What each command takes, with its help."""
    for each in command.params:
        yield f"{name} {each.name}", each.help
    for part, below in command.commands.items() if isinstance(command, TyperGroup) else ():
        yield from parameters(below, f"{name} {part}")


def test_every_argument_and_option_of_a_command_has_a_help() -> None:
    assert [name for name, text in parameters(get_command(app), "loopwright") if not text] == []


def is_json(content: dict[str, Any]) -> bool:
    return bool(content.get("application/json", {}).get("schema"))


def answer_of(operation: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = next(each for status, each in operation["responses"].items() if status[0] == "2")
    return content.get("content", {})


def valid(example: Any, schema: dict[str, Any]) -> None:
    whole = {**schema, "components": SCHEMA["components"]}
    jsonschema.Draft202012Validator(whole).validate(example)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_endpoint_has_true_examples(name: str) -> None:
    operation, example = OPERATIONS[name], EXAMPLES.get(name, {})
    body = operation.get("requestBody", {}).get("content", {})
    answer = answer_of(operation)
    assert ("body" in example) == is_json(body)
    assert ("answer" in example) == is_json(answer)
    if "body" in example:
        valid(example["body"], body["application/json"]["schema"])
    if "answer" in example:
        valid(example["answer"], answer["application/json"]["schema"])


def test_no_example_is_of_an_endpoint_that_is_not_there() -> None:
    assert EXAMPLES.keys() <= OPERATIONS.keys()


def raised() -> Iterator[tuple[str, int | None]]:
    """The kinds of the problems that the service's code raises, with their statuses where these are literal."""
    for file in (ROOT / "service").rglob("*.py"):
        source = file.read_text()
        for node in ast.walk(ast.parse(source)) if "ProblemError" in source else ():
            match node:
                case ast.Call(
                    func=ast.Name(id="ProblemError"),
                    args=[ast.Constant(value=int(status)), ast.Constant(value=str(kind)), *_],
                ):
                    yield kind, status
                case ast.Call(func=ast.Name(id="_unauthorised"), args=[ast.Constant(value=str(kind)), *_]):
                    yield kind, 401
                case ast.Call(func=ast.Name(id="_Submitted"), args=[_, ast.Constant(value=str(kind)), *_]):
                    yield kind, 422
                case ast.Assign(targets=[ast.Name(id="_REFUSALS")], value=ast.Dict(values=values)):
                    yield from ((str(each.value), 422) for each in values if isinstance(each, ast.Constant))
                case ast.Assign(
                    targets=[ast.Name(id="kind")],
                    value=ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=str(other))),
                ):
                    yield from ((one, 503), (other, 503))


def test_the_list_of_problems_has_exactly_those_that_the_service_answers_with() -> None:
    found = dict(raised())
    # Starlette answers a wrong method.
    assert found | {"method-not-allowed": 405} == KINDS
    assert len(KINDS) == len(PROBLEM_TYPES)


def test_every_status_of_an_endpoint_has_a_section_of_problems() -> None:
    refused = {int(status) for operation in OPERATIONS.values() for status in operation["responses"] if status >= "4"}
    assert refused <= {each.status for each in PROBLEM_TYPES}


def test_every_state_and_kind_of_failure_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "statuses.md").read_text()
    for kinds in (FailureKind, JobState, TaskState, TrialState):
        assert [kind for kind in kinds if f"| `{kind}` |" not in page] == []


def test_the_statuses_of_the_command_line_are_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == ["0", "1", "2", "3"]
