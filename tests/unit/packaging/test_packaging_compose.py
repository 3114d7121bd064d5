"""docker-compose.yml is valid, closed to the outside, and refers to what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONE_SHOT = {"migrate"}


def validate(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_compose_file_meets_the_schema() -> None:
    done = validate(ROOT / "docker-compose.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_schema_refuses_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text(TEXT.replace("healthcheck:", "healthchek:"))
    assert validate(wrong).returncode == 1


def test_parts_are_there() -> None:
    assert set(SERVICES) == {"db", "migrate", "ray-head", "cpu-worker", "controller", "api"}


def test_only_the_api_is_published_and_only_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8080:8080"]}
    assert not any("network_mode" in service for service in SERVICES.values())


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_service_runs_without_privileges(name: str) -> None:
    service = SERVICES[name]
    assert str(service["user"]).split(":")[0] not in {"", "0", "root"}
    assert service["cap_drop"] == ["ALL"]
    assert not service.get("privileged", False)


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ONE_SHOT))
def test_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_dependencies_wait_for_health_or_completion() -> None:
    for service in SERVICES.values():
        for name, how in service.get("depends_on", {}).items():
            assert how["condition"] == ("service_completed_successfully" if name in ONE_SHOT else "service_healthy")


def test_secrets_come_from_outside_and_have_no_default() -> None:
    references = re.findall(r"\$\{([A-Z_]+)([^}]*)\}", TEXT)
    assert {name for name, _ in references} == {"LOOPWRIGHT_DB_PASSWORD", "LOOPWRIGHT_RAY_TOKEN"}
    assert all(rest.startswith(":?") for _, rest in references)


def test_named_volumes_are_declared() -> None:
    used = {mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_image_is_built_from_files_that_are_there_and_not_ignored() -> None:
    build = SERVICES["api"]["build"]
    dockerfile = (ROOT / build["context"] / build["dockerfile"]).read_text()
    sources = [
        source
        for arguments in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, flags=re.MULTILINE)
        for source in arguments.split()[:-1]
    ]
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in allowed, source


def test_image_runs_as_the_user_that_compose_names() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    users = re.findall(r"^USER (.+)$", dockerfile, flags=re.MULTILINE)
    assert users[-1:] == [SERVICES["api"]["user"]]
