"""`loopwright.Model`: what takes it, beside plain models with the same options, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tvm
from tvm import relax, tirx
from typer.core import TyperGroup
from typer.main import get_command

import loopwright
from loopwright import Model, cli
from loopwright.applying import dispatch as shape_dispatch
from loopwright.codegen.errors import InvalidTarget
from loopwright.codegen.gpu.tf32 import MATH
from loopwright.errors import NotFound
from tests.support.perceptron import PERCEPTRON
from tests.support.programs import MM_RELU
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import FakeService, job_json
from tests.unit.client.known_bests import LLVM, serve

METHODS: dict[str, Callable[..., Any]] = {
    "submit": lambda client, model, **options: client.submit(model, LLVM, **options),
    "check": lambda client, model, **options: client.check(model, "main", LLVM, progress=False, **options),
    "best": lambda client, model, **options: client.best(model, LLVM, **options),
    "look_up": lambda client, model, **options: client.look_up(model, LLVM, **options),
    "apply": lambda client, model, **options: client.apply(model, LLVM, **options),
    "compile": lambda client, model, **options: client.compile(model, LLVM, **options),
    "compare": lambda client, model, **options: client.compare(model, ["tvm"], LLVM, progress=False, **options),
    "package": lambda client, model, **options: client.package(model, "never", LLVM, **options),
    "plan_shapes": lambda client, model, **options: client.plan_shapes(model, **options),
    "explain": lambda client, model, **options: loopwright.explain(lambda sch: None, model, **options),
}
REQUESTS = ("submit", "check", "best", "look_up", "apply", "compile")


EXACT = Model(MM_RELU, exact_math=True)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_model_is_sent_and_looked_up_as_a_plain_model_with_the_same_options(
    service: FakeService, client: loopwright.Client, name: str
) -> None:
    serve(service)
    service.on("POST", "/api/v1/jobs", job_json("failed"))
    for model, options in ((EXACT, {}), (MM_RELU, {"exact_math": True}), (replace(EXACT, exact_math=False), {})):
        with suppress(NotFound):  # the reference of a check
            METHODS[name](client, model, **options)
    asked = [request.json() for request in service.requests if request.method == "POST"]
    assert len(asked) == 3
    assert asked[0] == asked[1] != asked[2]


@pytest.mark.parametrize("name", METHODS)
def test_an_option_beside_a_model_is_refused_and_nothing_is_sent(
    service: FakeService, client: loopwright.Client, name: str
) -> None:
    with pytest.raises(TypeError, match=r"exact_math .*loopwright\.Model"):
        METHODS[name](client, EXACT, exact_math=False)
    with pytest.raises(TypeError, match="exact_maths"):
        METHODS[name](client, MM_RELU, exact_maths=True)
    assert service.requests == []


@pytest.mark.parametrize("name", ["compare", "package"])
def test_what_runs_on_cpus_refuses_tf32(service: FakeService, client: loopwright.Client, name: str) -> None:
    serve(service)
    for model, options in ((Model(PERCEPTRON, math="tf32"), {}), (PERCEPTRON, {"math": "tf32"})):
        with pytest.raises(InvalidTarget, match="tf32"):
            METHODS[name](client, model, **options)


def test_a_plan_is_for_the_program_that_the_options_make(
    client: loopwright.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, n = relax.BlockBuilder(), tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 4), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    mod = builder.get()
    planned: list[tvm.IRModule] = []
    plan = shape_dispatch.plan

    def seen(program: Any, shapes: Any, **options: Any) -> Any:
        planned.append(program.module)
        return plan(program, shapes, **options)

    monkeypatch.setattr(shape_dispatch, "plan", seen)
    model = Model(mod, shapes={"n": range(1, 65)}, math="tf32")
    plans = [
        client.plan_shapes(model),
        client.plan_shapes(mod, {"n": range(1, 65)}, math="tf32"),
        client.plan_shapes(mod, {"n": range(1, 65)}),
    ]
    assert plans[0] == plans[1] == plans[2] == client.plan_shapes(Model(mod, shapes=plans[0]))
    assert [dict(each.attrs or {}).get(MATH) for each in planned[:3]] == ["tf32", "tf32", None]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"math": "fp16"}, ValueError),
        ({"shapes": {"n": 1.5}}, TypeError),
        ({"shapes": [{"n": 1}, 2]}, TypeError),
    ],
    ids=str,
)
def test_a_wrong_option_is_named_when_the_model_is_made(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        Model(MM_RELU, **options)


def test_a_model_is_not_a_plain_model() -> None:
    with pytest.raises(TypeError, match=r"dataclasses\.replace"):
        Model(Model(MM_RELU))


@pytest.mark.parametrize(
    "shapes", [[{"n": 1}, {"n": 2}], {"n": range(1, 9)}, loopwright.plan_shapes({"n": range(1, 9)})]
)
def test_one_program_has_one_shape(service: FakeService, client: loopwright.Client, shapes: Any) -> None:
    with pytest.raises(TypeError, match="one value of each extent"):
        client.apply(Model(MM_RELU, shapes=shapes))
    assert service.requests == []


@pytest.mark.parametrize("shapes", [None, {"n": 1}, [{"n": 1}, {"n": 2}]])
def test_a_plan_needs_many_values_of_an_extent(client: loopwright.Client, shapes: Any) -> None:
    with pytest.raises(ValueError, match="many values of one extent"):
        client.plan_shapes(Model(MM_RELU, shapes=shapes))


def commands(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each command that takes a model, and its options."""
    if isinstance(command, TyperGroup):
        for part, below in command.commands.items():
            yield from commands(below, f"{name} {part}")
    elif "model" in {each.name for each in command.params} or name.endswith(" best"):
        yield name, {option for each in command.params for option in each.opts}


def test_each_command_that_takes_a_model_takes_its_options() -> None:
    found = dict(commands(get_command(cli.app), "loopwright"))
    assert len(found) == 8
    assert [name for name, options in found.items() if not {"--shape", "--exact-math", "--math"} <= options] == []


@pytest.mark.parametrize("words", [("compare", "--against", "tvm"), ("package", "-o", "never")], ids=" ".join)
def test_a_command_gives_its_options_to_the_model(
    service: FakeService, run: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    serve(service)
    path = tmp_path / "perceptron.py"
    path.write_text(PERCEPTRON)
    done = run(words[0], str(path), *words[1:], "--math", "tf32")
    assert done.status == 2
    assert "tf32" in done.err
