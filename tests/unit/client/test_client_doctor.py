"""``loopwright doctor``: what it finds of this Python, the service and the checkout, and the advice."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable

import pytest

import loopwright
from loopwright import doctor
from loopwright.codegen.versions import PINS, TVM_VERSION
from loopwright.doctor import Finding, Health
from loopwright.local import parts
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import FakeService, page, problem

ME: dict[str, object] = {"user": "ada", "kind": "token", "scope": "submit", "rights": [], "expires_at": None}
WORKER = {
    "id": "box/cpu",
    "host": "box",
    "device": "cpu",
    "target": {"kind": "llvm"},
    "device_class": "class-1",
    "threads": 2,
    "builders": 2,
    "sandbox": "landlock",
    "alive": True,
    "last_seen_at": "2026-01-01T00:00:00Z",
    "device_model": "a processor",
    "builders_busy": 0,
    "slot": None,
    "slot_use": None,
    "drift": None,
    "quarantine": None,
}


def by_subject(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


def test_a_complete_python_has_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    found = by_subject(doctor.of_this_python())
    assert {"Python", "TVM", "linker", "threads", "PyTorch", "ONNX"} <= found.keys()
    assert all(finding.health is Health.OK and finding.advice is None for finding in found.values())
    assert TVM_VERSION in found["TVM"].found


@pytest.mark.parametrize(
    ("installed", "health", "advice"),
    [
        ({}, Health.WARNING, "pip install 'loopwright[tvm]'"),
        (PINS | {"apache-tvm-ffi": "9.9"}, Health.PROBLEM, "pip install 'apache-tvm=="),
        ({"apache-tvm": TVM_VERSION}, Health.PROBLEM, "pip install 'apache-tvm=="),
    ],
)
def test_another_tvm_is_named_with_what_to_install(
    installed: dict[str, str], health: Health, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopwright.codegen.versions._installed", installed.get)
    found = by_subject(doctor.of_this_python())["TVM"]
    assert found.health is health
    assert advice in str(found.advice)


def test_a_missing_linker_and_other_threads_are_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("TVM_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "97")
    found = by_subject(doctor.of_this_python())
    assert found["linker"].health is Health.WARNING
    assert "binutils" in str(found["linker"].advice)
    assert found["threads"].found.startswith("97 by OMP_NUM_THREADS")
    assert "unset OMP_NUM_THREADS" in str(found["threads"].advice)


def answering(service: FakeService, tvm: str = TVM_VERSION, **worker: object) -> None:
    service.on("GET", "/version", {"loopwright": "1.0", "tvm": tvm, "api": "v1"})
    service.on("GET", "/api/v1/me", ME)
    service.on("GET", "/api/v1/workers", page(WORKER | worker))


def test_a_service_that_works(service: FakeService, client: loopwright.Client) -> None:
    answering(service)
    serving, workers = doctor.of_the_service(client)
    assert (serving.health, workers.health) == (Health.OK, Health.OK)
    assert "ada, who may submit" in serving.found
    assert "box/cpu (a processor)" in workers.found


def test_a_service_of_another_tvm_or_without_workers(service: FakeService, client: loopwright.Client) -> None:
    answering(service, tvm="0.1", alive=False)
    serving, workers = doctor.of_the_service(client)
    assert (serving.health, workers.health) == (Health.PROBLEM, Health.PROBLEM)
    assert TVM_VERSION in str(serving.advice)


@pytest.mark.whole
def test_no_service_is_a_problem_with_an_exit_status(run: Command) -> None:
    done = run("--url", "http://127.0.0.1:9", "doctor", "--json", "--serve=--port=65535")
    assert done.status == 1
    *_, last = json.loads(done.out)
    assert (last["subject"], last["health"]) == ("service at http://127.0.0.1:9", "problem")
    assert "loopwright service start" in last["advice"]


def test_a_token_that_the_service_does_not_know_is_to_be_replaced(
    service: FakeService, client: loopwright.Client
) -> None:
    answering(service)
    service.on("GET", "/api/v1/me", problem(401, "Unauthorised", "The service does not know this token."))
    [found] = doctor.of_the_service(client)
    assert found.health is Health.PROBLEM
    assert f"loopwright login {service.url}; unset LOOPWRIGHT_TOKEN" in str(found.advice)
    assert "service start" not in str(found.advice)


def test_a_checkout_that_cannot_be_checked_says_why() -> None:
    (finding,) = doctor.of_the_checkout(["--port", "none"])
    assert finding.health is Health.PROBLEM
    assert "invalid int value: 'none'" in finding.found


def test_a_client_alone_has_no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "command", lambda _: None)
    monkeypatch.setattr(subprocess, "run", None)
    assert list(doctor.of_the_checkout([])) == []
