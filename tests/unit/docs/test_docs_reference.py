"""The reference has everything that can be called, set or answered, and what it shows is true."""

from __future__ import annotations

import ast
import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import griffe
import jsonschema
import pytest
from typer.core import TyperGroup
from typer.main import get_command

import loopwright
from loopwright.cli import app
from loopwright.schemas import FailureKind, JobState, TaskState, TrialState
from service.metric_catalogue import METRICS
from service.problem_types import PROBLEM_TYPES, URN
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


def text(page: Path) -> str:
    """The words of a page, without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_the_site_is_built_without_tvm_ray_and_pytorch() -> None:
    code = "import docs.hooks.reference, sys; print([*{'tvm', 'ray', 'torch'} & set(sys.modules)])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def commands(command: Any, name: str) -> Iterator[str]:
    yield name
    if isinstance(command, TyperGroup):
        for part, below in command.commands.items():
            yield from commands(below, f"{name} {part}")


def test_every_exported_name_of_the_package_is_on_a_page(site: Path) -> None:
    anchors = {
        anchor for page in site.glob("reference/*.html") for anchor in re.findall(r'id="?([\w.]+)', page.read_text())
    }
    shown = {anchor.rpartition(".")[2] for anchor in anchors if anchor.startswith("loopwright.")}
    assert set(loopwright.__all__) - {"__version__"} <= shown
    assert {"backend", "refresh", "outcomes"} <= shown


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
            given = {argument.name for argument in each.parameters} - {"self"}
            assert given <= told, each.path


def test_nothing_private_is_on_a_page_of_the_package(site: Path) -> None:
    for page in site.glob("reference/*.html"):
        found = re.findall(r'id="?(loopwright\.[\w.]+)', page.read_text())
        assert not [name for name in found if re.search(r"\._(?!_call__)", name)], page.name


def test_every_command_and_option_is_on_its_page(site: Path) -> None:
    page = text(site / "reference" / "commands.html")
    root = get_command(app)
    names = list(commands(root, "loopwright"))
    assert len(names) > 30
    for name in names:
        assert name in page
    assert "--idempotency-key" in page


def parameters(command: Any, name: str) -> Iterator[tuple[str, str | None]]:
    """What each command takes, with its help."""
    for each in command.params:
        yield f"{name} {each.name}", each.help
    for part, below in command.commands.items() if isinstance(command, TyperGroup) else ():
        yield from parameters(below, f"{name} {part}")


def test_every_argument_and_option_of_a_command_has_a_help() -> None:
    assert [name for name, text in parameters(get_command(app), "loopwright") if not text] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_endpoint_is_on_the_page_of_its_tag(site: Path, name: str) -> None:
    operation = OPERATIONS[name]
    page = text(site / "reference" / "rest" / f"{operation['tags'][0]}.html")
    assert name in page
    for parameter in operation.get("parameters", ()):
        assert parameter["name"] in page


def test_every_object_is_described_once_with_its_fields(site: Path) -> None:
    pages = [page.read_text() for page in site.glob("reference/rest/*.html")]
    for name, model in SCHEMA["components"]["schemas"].items():
        described = [page for page in pages if re.search(rf'<h3 id="?{name.lower()}[" >]', page)]
        assert len(described) == (0 if name.startswith("Page_") else 1), name
        assert all(f"<code>{field}</code>" in page for page in described for field in model["properties"])


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


def test_every_problem_is_on_its_page_by_status(site: Path) -> None:
    page = site / "reference" / "errors.html"
    for each in PROBLEM_TYPES:
        assert URN + each.kind in text(page)
        assert re.search(rf'id="?status-{each.status}[" >]', page.read_text())
    statuses = [each.status for each in PROBLEM_TYPES]
    assert statuses == sorted(statuses)


def test_every_status_of_an_endpoint_has_a_section_of_problems() -> None:
    refused = {int(status) for operation in OPERATIONS.values() for status in operation["responses"] if status >= "4"}
    assert refused <= {each.status for each in PROBLEM_TYPES}


def test_every_metric_is_on_its_page(site: Path) -> None:
    page = text(site / "reference" / "metrics.html")
    assert [each.name for each in METRICS if each.name not in page] == []


def test_every_state_and_kind_of_failure_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "statuses.md").read_text()
    for kinds in (FailureKind, JobState, TaskState, TrialState):
        assert [kind for kind in get_args(kinds) if f"| `{kind}` |" not in page] == []


def test_the_statuses_of_the_command_line_are_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == ["0", "1", "2", "3"]
