"""One real service for the SDK and the command line, and the programs that it has tuned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright import Client, Job
from tests.support.perceptron import PERCEPTRON
from tests.support.programs import MM_RELU
from tests.support.service import JOB_SECONDS, Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("sdk"))
    try:
        service.start()
        yield service
    finally:
        service.destroy()


@pytest.fixture(scope="session")
def token(service: Service) -> str:
    return (service.data_dir / "token").read_text().strip()


@pytest.fixture(scope="session")
def client(service: Service, token: str) -> Iterator[Client]:
    with Client(service.url, token) as connected:
        yield connected


@pytest.fixture(autouse=True)
def nothing_goes_on(client: Client) -> Iterator[None]:
    """All tests share a database: a job that outlives its test would change a best while the next one compares it."""
    yield
    assert [job for job in client.jobs() if not job.finished] == []


@pytest.fixture(scope="session")
def product(client: Client) -> Job:
    """A finished job of MM_RELU, one PrimFunc."""
    return tuned(client.submit(MM_RELU, max_trials=16, name="product"))


@pytest.fixture(scope="session")
def perceptron(client: Client) -> Job:
    """A finished job of PERCEPTRON, a Relax module of two tasks."""
    return tuned(client.submit(PERCEPTRON, max_trials=16, name="perceptron"))


def tuned(job: Job) -> Job:
    job.wait(progress=False, timeout=JOB_SECONDS)
    assert job.state == "succeeded", job.error
    assert all(task.certified for task in job.tasks)
    return job


@pytest.fixture
def on_the_same_machine(service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment of the user who runs the service: nothing set, no login saved."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(service.folder / "state"))
    for name in ("XDG_CONFIG_HOME", "LOOPWRIGHT_URL", "LOOPWRIGHT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
