"""docker-compose.yml is valid, closed to the outside, and refers to what is there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from sqlalchemy import make_url

from db import migrate
from tests.support import vendored_schemas
from tests.support.postgres import postgres_server

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docker-compose.yml").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONE_SHOT = {"migrate"}
LOCK = "host-lock:/run/user/10001"


def test_compose_file_meets_the_schema() -> None:
    assert vendored_schemas.errors("compose-spec", TEXT) == []
    assert vendored_schemas.errors("compose-spec", TEXT.replace("healthcheck:", "healthchek:"))


def test_only_the_api_and_dashboards_are_published_and_only_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8080:8080"], "grafana": ["127.0.0.1:3000:3000"]}
    assert not any("network_mode" in service for service in SERVICES.values())


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_service_runs_without_privileges_within_limits_and_cannot_change_its_image(name: str) -> None:
    service = SERVICES[name]
    assert str(service["user"]).split(":")[0] not in {"", "0", "root"}
    assert service["cap_drop"] == ["ALL"]
    assert not service.get("privileged", False)
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] > 0
    assert re.search(r"\d+g", service["mem_limit"])
    assert {"max-size", "max-file"} <= set(service["logging"]["options"])


@pytest.mark.parametrize("name", sorted(set(SERVICES) - ONE_SHOT))
def test_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_dependencies_wait_for_health_or_completion() -> None:
    for service in SERVICES.values():
        for name, how in service.get("depends_on", {}).items():
            assert how["condition"] == ("service_completed_successfully" if name in ONE_SHOT else "service_healthy")


def test_secrets_come_from_outside_and_have_no_default() -> None:
    references = re.findall(r"\$\{([A-Z_]+)([^}]*)\}", TEXT)
    secrets = {name for name, rest in references if rest.startswith(":?")}
    assert secrets == {"LOOPWRIGHT_DB_PASSWORD", "LOOPWRIGHT_SERVICE_DB_PASSWORD", "LOOPWRIGHT_RAY_TOKEN"}
    others = {name for name, rest in references if not rest.startswith(":?")}
    limited = ("API", "CONTROLLER", "DB", "GRAFANA", "PROMETHEUS", "WORKER")
    handed_on = {"LOOPWRIGHT_LOG_FORMAT", "LOOPWRIGHT_LOG_REQUESTS", "OTEL_EXPORTER_OTLP_ENDPOINT"}
    assert others == {f"LOOPWRIGHT_{part}_MEMORY" for part in limited} | handed_on | {"LOOPWRIGHT_TRACES"}


def networks(name: str) -> set[str]:
    return set(SERVICES[name]["networks"])


def test_who_measures_reaches_no_database_and_nothing_outside() -> None:
    assert networks("cpu-worker") == networks("gpu-worker") == networks("ray-head") == {"ray"}
    assert {name for name in SERVICES if "database" in networks(name)} == {"db", "migrate", "controller", "api"}
    assert {name for name in SERVICES if "edge" in networks(name)} == {"api", "grafana"}
    assert {name for name in SERVICES if "metrics" in networks(name)} == {"api", "grafana", "prometheus"}
    assert networks("prometheus") == {"metrics"}
    inside = {name for name, network in COMPOSE["networks"].items() if network.get("internal")}
    assert inside == set(COMPOSE["networks"]) - {"edge"}


def secrets_of(name: str) -> set[str]:
    return set(re.findall(r"\$\{([A-Z_]+):\?", yaml.dump(SERVICES[name], width=10_000)))


def test_each_part_has_the_secrets_that_it_needs() -> None:
    owner, role, ray = "LOOPWRIGHT_DB_PASSWORD", "LOOPWRIGHT_SERVICE_DB_PASSWORD", "LOOPWRIGHT_RAY_TOKEN"
    assert {name: secrets_of(name) for name in SERVICES} == {
        "db": {owner, role},
        "migrate": {owner},
        "ray-head": {ray},
        "cpu-worker": {ray},
        "gpu-worker": {ray},
        "prometheus": set(),
        "grafana": set(),
        "controller": {role, ray},
        "api": {role},
    }


def test_role_of_the_service_is_made_and_granted(tmp_path: Path) -> None:
    script = COMPOSE["configs"]["service-role"]["content"].replace("$$", "$")
    password = 'it\'s "hard" to $quote'
    with postgres_server() as server:
        parts = make_url(server.get_uri())
        environment = {
            **os.environ,
            "PATH": f"{server.bin_path}{os.pathsep}{os.environ['PATH']}",
            "PGHOST": str(parts.query["host"]),
            "POSTGRES_USER": str(parts.username),
            "POSTGRES_DB": str(parts.database),
            "LOOPWRIGHT_SERVICE_DB_PASSWORD": password,
        }
        subprocess.run(["bash", "-e", "-c", script], env=environment, check=True, cwd=tmp_path)
        role = str(SERVICES["migrate"]["command"][-1])
        migrate.upgrade(server.get_uri())
        migrate.grant(server.get_uri(), role)
        with psycopg.connect(server.get_uri(), user=role, password=password) as connection:
            assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
    assert f"//{role}:" in SERVICES["api"]["environment"]["LOOPWRIGHT_DATABASE_URL"]


@pytest.mark.parametrize("name", ["api", "controller", "cpu-worker", "gpu-worker"])
def test_programs_can_be_loaded_from_a_temporary_folder_of_limited_size(name: str) -> None:
    options = dict.fromkeys(SERVICES[name]["tmpfs"][0].removeprefix("/tmp:").split(","))
    assert "exec" in options  # Docker's default is noexec
    assert any(option.startswith("size=") for option in options)


def test_parts_on_one_host_share_its_lock() -> None:
    mounted = {name for name, service in SERVICES.items() if LOCK in service.get("volumes", [])}
    assert mounted == {"api", "controller", "cpu-worker", "gpu-worker"}
    uid = SERVICES["api"]["user"].split(":")[0]
    folder = f"/run/user/{uid}"
    assert LOCK.endswith(f":{folder}")
    assert re.search(rf"install --directory .*{folder}$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)


def test_named_volumes_are_declared_and_folders_are_there_to_read() -> None:
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", [])]
    folders = [mount for mount in mounts if mount[0].startswith("./")]
    assert {mount[0] for mount in mounts if mount not in folders} == set(COMPOSE["volumes"])
    assert folders
    for folder, _, *options in folders:
        assert (ROOT / folder).is_dir(), folder
        assert options == ["ro"]


def test_a_gpu_worker_is_a_worker_with_the_hosts_gpus() -> None:
    gpu, cpu = SERVICES["gpu-worker"], SERVICES["cpu-worker"]
    own = {"profiles", "image", "build", "deploy"}
    assert {key: value for key, value in gpu.items() if key not in own} == {
        key: value for key, value in cpu.items() if key not in own
    }
    assert gpu["build"]["target"] in re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, flags=re.MULTILINE)
    (device,) = gpu["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]
    assert "target" not in SERVICES["api"]["build"]
    assert DOCKERFILE.rstrip().endswith("\nFROM service")


def test_who_looks_at_dashboards_needs_no_password_and_can_change_nothing() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert environment["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert not any("PASSWORD" in name for name in environment)


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
        assert source == "." or source.split("/")[0] in allowed, source


def test_image_runs_as_the_user_that_compose_names() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    users = re.findall(r"^USER (.+)$", dockerfile, flags=re.MULTILINE)
    assert users[-1:] == [SERVICES["api"]["user"]]
