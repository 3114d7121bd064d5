"""Every example, from beginning to end, on one real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples import (
    deployment,
    library_calls,
    metaschedule_records,
    mm_relu,
    onnx_model,
    perceptron,
    resnet18,
    transformer,
)
from loopwright import Client
from tests.support.service import Service

EXAMPLES: dict[str, Callable[[Client], None]] = {
    "deployment": lambda client: deployment.main(client, trials=8),
    "library_calls": lambda client: library_calls.main(client, trials=16),
    "metaschedule_records": lambda client: metaschedule_records.main(client, trials=8),
    "mm_relu": lambda client: mm_relu.main(client, trials=16),
    "onnx_model": lambda client: onnx_model.main(client, trials=16),
    "perceptron": lambda client: perceptron.main(client, trials=32),
    "resnet18": lambda client: resnet18.main(client, seconds=20, size=64),
    "transformer": lambda client: transformer.main(client, trials=32),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    service = Service(tmp_path_factory.mktemp("examples"))
    try:
        service.start()
        with Client(service.url, (service.data_dir / "token").read_text().strip()) as connected:
            yield connected
    finally:
        service.destroy()


def test_every_example_is_run() -> None:
    folder = Path(__file__).resolve().parents[2] / "examples"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(EXAMPLES)
    listed = (folder / "README.md").read_text()
    assert all(f"]({name}.py)" in listed for name in EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(client: Client, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    EXAMPLES[name](client)
    assert capfd.readouterr().out.strip(), "an example tells what it found"
