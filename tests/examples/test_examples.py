"""Every example, from beginning to end, on a running service; with few trials: what is found is not what is tested."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tvm.s_tir.meta_schedule.builder import Builder, LocalBuilder
from tvm.target import Target

from examples import (
    check_regression,
    compare_engines,
    decoder,
    deployment,
    library_calls,
    metaschedule_records,
    mm_relu,
    onnx_model,
    package_model,
    perceptron,
    resnet18,
    shape_portfolio,
    torch_compile,
    transformer,
)
from loopwright import Client
from loopwright.codegen.program.intrinsics import only_intrinsics_of
from tests.examples import stock_builder
from tests.support.service_client import ServiceClient


def beside_stock(run: Callable[[], None]) -> None:
    """Run what tunes with stock MetaSchedule, in less time and without a trace in this process.

    It parses the intrinsics of all vendors, here and in each process that builds: 10 s each time. It also leaves a log
    file open in a folder that is gone afterwards, and the next line for it would end the process: C++ writes it in a
    destructor, where no error may leave.
    """
    logger = logging.getLogger("tvm.s_tir.meta_schedule")
    with only_intrinsics_of(Target("llvm")), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Builder, "create", lambda kind, **options: LocalBuilder(f_build=stock_builder.build, **options))
        patch.setattr(logger, "handlers", [])
        patch.setattr(logger, "propagate", logger.propagate)
        run()
        for handler in logger.handlers:
            handler.close()


EXAMPLES: dict[str, Callable[[Client], None]] = {
    "check_regression": lambda client: check_regression.main(client, trials=8),
    "compare_engines": lambda client: compare_engines.main(client, trials=8, against=["torch", "ort"], rounds=1),
    "package_model": lambda client: package_model.main(client, trials=12),
    "torch_compile": lambda client: torch_compile.main(client, trials=4),
    "decoder": lambda client: decoder.main(client, trials=8),
    "deployment": lambda client: deployment.main(client, trials=4),
    "library_calls": lambda client: library_calls.main(client, trials=4),
    "metaschedule_records": lambda client: beside_stock(lambda: metaschedule_records.main(client, trials=4)),
    "mm_relu": lambda client: mm_relu.main(client, trials=6),
    "onnx_model": lambda client: onnx_model.main(client, trials=4),
    "perceptron": lambda client: perceptron.main(client, trials=6),
    "resnet18": lambda client: resnet18.main(client, seconds=2, size=32),
    "shape_portfolio": lambda client: shape_portfolio.main(client, trials=24),
    "transformer": lambda client: transformer.main(client, trials=12),
}

SLOW = (
    "check_regression",
    "compare_engines",
    "decoder",
    "deployment",
    "metaschedule_records",
    "package_model",
    "perceptron",
    "resnet18",
    "shape_portfolio",
    "torch_compile",
    "transformer",
)


@pytest.fixture(scope="module")
def client(service: ServiceClient) -> Iterator[Client]:
    with Client(service.url, service.token) as connected:
        yield connected


def test_every_example_is_run() -> None:
    folder = Path(__file__).resolve().parents[2] / "examples"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(EXAMPLES)
    listed = (folder / "README.md").read_text()
    assert all(f"]({name}.py)" in listed for name in EXAMPLES)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.whole) if name in SLOW else name for name in EXAMPLES]
)
def test_example(client: Client, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    EXAMPLES[name](client)
    assert capfd.readouterr().out.strip(), "an example tells what it found"
    assert not logging.getLogger("tvm.s_tir.meta_schedule").handlers, "the folder of this log is gone"
