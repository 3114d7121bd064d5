"""The locks are complete, hashed, free of addresses, and agree with pyproject.toml and with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SERVICE_GROUPS = ["build", "service", "workers"]


def lock_text(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.txt").read_text()


def entries(name: str) -> list[tuple[Requirement, list[str]]]:
    """Each locked requirement with its hashes."""
    logical_lines = lock_text(name).replace("\\\n", " ").splitlines()
    parts = [line.split() for line in logical_lines if line and not line.startswith("#")]
    return [
        (
            Requirement(" ".join(word for word in words if not word.startswith("--"))),
            [word.removeprefix("--hash=") for word in words if word.startswith("--hash=")],
        )
        for words in parts
    ]


def pins(name: str) -> dict[str, str]:
    return {requirement.name: str(requirement.specifier).removeprefix("==") for requirement, _ in entries(name)}


@pytest.mark.parametrize("name", ["service", "otel", "dev", "rivals"])
def test_every_entry_is_pinned_and_hashed(name: str) -> None:
    for requirement, hashes in entries(name):
        assert re.fullmatch(r"==[^=*,]+", str(requirement.specifier)), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes), requirement


@pytest.mark.parametrize("name", ["service", "otel", "dev", "rivals"])
def test_no_entry_names_an_address(name: str) -> None:
    text = lock_text(name)
    assert "://" not in text
    assert not re.search(r"^\s*-", re.sub(r"^\s*--hash=\S+", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    assert all(requirement.url is None for requirement, _ in entries(name))


@pytest.mark.parametrize(
    ("name", "groups"), [("service", SERVICE_GROUPS), ("otel", ["otel"]), ("dev", [*SERVICE_GROUPS, "otel", "dev"])]
)
def test_lock_satisfies_every_direct_dependency(name: str, groups: list[str]) -> None:
    direct = [] if name == "otel" else [*PROJECT["project"]["dependencies"]]
    for group in groups:
        direct += PROJECT["dependency-groups"][group]
    locked = pins(name)
    for requirement in map(Requirement, direct):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


def test_dev_is_a_superset_of_service() -> None:
    assert pins("service").items() <= pins("dev").items()


def test_what_sends_traces_can_be_installed_beside_the_service() -> None:
    assert pins("otel").items() <= pins("dev").items()


def test_pins_of_tvm_agree_everywhere() -> None:
    tvm = {line for line in PROJECT["dependency-groups"]["workers"] if line.startswith("apache-tvm")}
    assert tvm == set(PROJECT["project"]["optional-dependencies"]["tvm"])
