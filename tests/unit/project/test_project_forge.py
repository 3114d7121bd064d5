"""Workflows and forms of the forge meet its schemas, do what a contributor can do with a script, and may do little."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import vendored_schemas
from tests.unit.docs import parsers
from tests.unit.docs.documents import inline, table

ROOT = Path(__file__).parents[3]
GITHUB = ROOT / ".github"
WORKFLOWS = {file.stem: file for file in sorted((GITHUB / "workflows").iterdir())}
FORMS = sorted(file for file in (GITHUB / "ISSUE_TEMPLATE").iterdir() if file.stem != "config")
SCHEMAS = {
    "github-workflows": list(WORKFLOWS.values()),
    "github-issue-forms": FORMS,
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "dependabot": [GITHUB / "dependabot.yml"],
}
PROGRAMS_OF_RUNNERS = {"sudo", "gh"}
HOST = r"\b(?!opencontainers\.org|options\.dev)[a-z][\w-]*(?<!example)\.(?:com|dev|io|net|org)\b"
"""A name of a host, but for those of examples. Registries are those that the reader's tools are configured with."""


def workflow(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(WORKFLOWS[name].read_text()))


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in WORKFLOWS:
        yield from ((f"{name}: {job}", body) for job, body in workflow(name)["jobs"].items())


def steps() -> Iterator[dict[str, Any]]:
    for _, job in jobs():
        yield from job.get("steps", [])


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_files_meet_the_schema(schema: str) -> None:
    assert {file.name: vendored_schemas.errors(schema, file.read_text()) for file in SCHEMAS[schema]} == {
        file.name: [] for file in SCHEMAS[schema]
    }


def test_a_schema_refuses_a_mistake() -> None:
    assert vendored_schemas.errors("github-workflows", WORKFLOWS["test"].read_text().replace("runs-on:", "runs-at:"))


def test_only_a_tag_starts_a_release() -> None:
    # YAML reads the key `on` as true.
    assert workflow("release")[True] == {"push": {"tags": ["v*"]}}  # type: ignore[index]


def test_steps_run_what_a_contributor_can_run() -> None:
    for step in steps():
        if "run" in step:
            program = step["run"].split()[0]
            if program not in PROGRAMS_OF_RUNNERS:
                parsers.check(step["run"])
            assert "${{" not in step["run"], "text of others becomes a command: give it in env"


def test_actions_are_pinned_by_version() -> None:
    used = [use for each in (*steps(), *(job for _, job in jobs())) if (use := each.get("uses"))]
    assert used
    for use in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", use) or (ROOT / use).is_file(), use


def test_workflows_may_read_the_repository_and_nothing_else_but_where_they_publish() -> None:
    assert all(workflow(name)["permissions"] == {"contents": "read"} for name in WORKFLOWS)
    assert {name: job["permissions"] for name, job in jobs() if "permissions" in job} == {
        "release: packages": {"id-token": "write"},
        "release: images": {"contents": "read", "packages": "write"},
        "release: page": {"contents": "write"},
    }


def test_what_leaves_for_a_registry_waits_for_a_maintainer() -> None:
    release = workflow("release")["jobs"]
    assert {name for name, job in release.items() if job.get("environment") == "release"} == {"packages", "images"}
    assert set(release["page"]["needs"]) == {"packages", "images"}


def test_every_job_has_a_deadline_and_every_workflow_a_group() -> None:
    assert all("timeout-minutes" in job or "uses" in job for _, job in jobs())
    assert all("concurrency" in workflow(name) for name in WORKFLOWS)


def test_tests_run_on_the_oldest_and_the_newest_python_that_the_project_names() -> None:
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert workflow("test")["jobs"]["test"]["strategy"]["matrix"]["python"] == [classifiers[0], classifiers[-1]]


def test_no_file_of_the_forge_or_of_releases_names_a_registry() -> None:
    files = [file for top in (".github", ".devcontainer") for file in (ROOT / top).rglob("*") if file.is_file()]
    files += [ROOT / name for name in ("Dockerfile", ".pre-commit-config.yaml", "SECURITY.md", "CODE_OF_CONDUCT.md")]
    files += [*(ROOT / "scripts").glob("*[a-z]"), ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md"]
    assert not {str(file.relative_to(ROOT)) for file in files if re.search(HOST, file.read_text())}


def test_labels_of_forms_are_described() -> None:
    described = {label for row in table(ROOT / "CONTRIBUTING.md", "label") for label in inline(row[0])}
    given = {label for form in FORMS for label in yaml.safe_load(form.read_text())["labels"]}
    assert given
    assert given <= described
