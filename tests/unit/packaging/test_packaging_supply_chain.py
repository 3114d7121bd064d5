"""Lists of components are valid and whole, and an audit without an answer is not taken for a clean one."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from loopwright.version import VERSION

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "service" / "dashboard"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


audit_locks = loaded("audit_locks")


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of the file of each part."""
    folder = tmp_path_factory.mktemp("sbom")
    subprocess.run([ROOT / "scripts" / "sbom", folder], check=True, capture_output=True, timeout=120)
    return {path.name.partition(".")[0]: path.read_text() for path in folder.iterdir()}


def versions(text: str) -> set[tuple[str, str]]:
    return {(component["name"], component["version"]) for component in json.loads(text)["components"]}


@pytest.mark.whole
@pytest.mark.parametrize("part", ["service", "dashboard"])
def test_list_meets_the_schema_and_names_the_version(lists: dict[str, str], part: str) -> None:
    version = SchemaVersion.from_version(json.loads(lists[part])["specVersion"])
    assert JsonStrictValidator(version).validate_str(lists[part]) is None
    assert json.loads(lists[part])["metadata"]["component"]["version"] == VERSION


@pytest.mark.whole
def test_list_of_the_service_is_its_lock(lists: dict[str, str]) -> None:
    lock = (ROOT / "requirements" / "service.txt").read_text()
    assert versions(lists["service"]) == set(re.findall(r"^([\w.-]+)==(\S+) ", lock, flags=re.MULTILINE))


@pytest.mark.whole
def test_list_of_the_dashboard_is_its_lock_without_tools(lists: dict[str, str]) -> None:
    packages: dict[str, dict[str, Any]] = json.loads((DASHBOARD / "package-lock.json").read_text())["packages"]
    shipped = {
        (path.rpartition("node_modules/")[2], package["version"])
        for path, package in packages.items()
        if path and not package.get("dev") and not package.get("devOptional")
    }
    assert shipped
    assert versions(lists["dashboard"]) == shipped


def test_dashboard_has_the_version_of_the_project() -> None:
    lock = json.loads((DASHBOARD / "package-lock.json").read_text())
    stated = [json.loads((DASHBOARD / "package.json").read_text()), lock, lock["packages"][""]]
    assert [each["version"] for each in stated] == [VERSION] * 3


PYTHON_CLEAN = '{"dependencies": [{"name": "a", "version": "1.0", "vulns": []}], "fixes": []}'
PYTHON_FOUND = '{"dependencies": [{"name": "a", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]}]}'
PYTHON_SKIPPED = '{"dependencies": [{"name": "a", "skip_reason": "Dependency not found: a (1.0)"}], "fixes": []}'
NPM_CLEAN = '{"auditReportVersion": 2, "vulnerabilities": {}, "metadata": {}}'
NPM_FOUND = '{"auditReportVersion": 2, "vulnerabilities": {"b": {"name": "b", "severity": "high", "range": "<2.0.0"}}}'
NPM_REFUSED = '{"message": "405 Method Not Allowed", "method": "POST", "statusCode": 405, "error": {"summary": ""}}'


@pytest.mark.parametrize(
    ("python", "npm", "status"),
    [
        (PYTHON_CLEAN, NPM_CLEAN, 0),
        (PYTHON_FOUND, NPM_CLEAN, 1),
        (PYTHON_CLEAN, NPM_FOUND, 1),
        (PYTHON_SKIPPED, NPM_FOUND, 1),
        (PYTHON_SKIPPED, NPM_CLEAN, 3),
        (PYTHON_CLEAN, NPM_REFUSED, 3),
        ("", NPM_CLEAN, 3),
        (PYTHON_CLEAN, "", 3),
    ],
)
def test_status_of_an_audit(python: str, npm: str, status: int) -> None:
    audits = [audit_locks.python_audit(python, "no network"), audit_locks.npm_audit(npm, "no network")]
    assert audit_locks.exit_status(audits) == status


def test_an_audit_names_its_findings_and_why_there_are_none() -> None:
    assert audit_locks.python_audit(PYTHON_FOUND, "").advisories == ("a 1.0: PYSEC-1",)
    assert audit_locks.npm_audit(NPM_FOUND, "").advisories == ("b <2.0.0: high",)
    assert audit_locks.python_audit("", "warning\nno network\n").unknown == ("pip-audit gave no answer: no network",)
    assert audit_locks.npm_audit(NPM_REFUSED, "").unknown == ("npm audit gave no answer: 405 Method Not Allowed",)
