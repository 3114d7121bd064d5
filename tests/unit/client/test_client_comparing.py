"""Engines side by side: what each is given, how it answers, and what becomes of those that cannot."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
import torch
from torch import nn

from loopwright import Comparison, UnsupportedModel, frontends, schemas
from loopwright.applying.lookup import LookedUp, lower
from loopwright.codegen.target import target_from
from loopwright.comparing import compare, engines, writing
from loopwright.comparing.case import NoForm, largest_error
from loopwright.comparing.child import prepare
from loopwright.comparing.engines import OPENVINO, OURS, PYTORCH, RIVALS, EngineInfo
from loopwright.comparing.files import Files
from loopwright.frontends.program import Program
from loopwright.frontends.tvmscript import module_from_script
from loopwright.model import Model
from loopwright.results.tables import by_share, in_one_line
from tests.support.cases import first
from tests.support.comparisons import comparison
from tests.support.perceptron import PERCEPTRON
from tests.support.programs import MM_RELU
from tests.unit.client.fake_service import FakeService, best_json
from tests.unit.client.known_bests import LOOKUP, serve


class Net(nn.Module):
    """Two inputs of unlike kinds, by position or by name; two outputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.linear = nn.Embedding(10, 16), nn.Linear(16, 4)

    def forward(self, ids: torch.Tensor, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.linear(self.table(ids) + x)
        return {"y": y, "best": y.argmax(-1)}


NAMED = {"ids": torch.arange(6).reshape(2, 3), "x": torch.linspace(-1, 1, 96).reshape(2, 3, 16)}


def written(folder: Path, inputs: Any = NAMED, *, with_onnx: bool = True) -> Files:
    files, reference = writing.write(folder, Model(Net().eval(), example_inputs=inputs), "auto", with_onnx=with_onnx)
    assert reference == "PyTorch"
    assert Files.read(folder) == files
    return files


@pytest.fixture(scope="module", params=first(1, [NAMED, (tuple(NAMED.values()),)]), ids=["named", "in order"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return written(tmp_path_factory.mktemp("files"), request.param)


@pytest.mark.parametrize("name", ["torch", "ort", "openvino"])
def test_an_engine_computes_what_pytorch_computes(files: Files, name: str) -> None:
    engine = RIVALS[name]
    answer, ready = prepare(engine.module, list(engine.packages), files, 1, None)
    assert answer.variants, answer.failures
    assert set(answer.versions) == set(engine.packages)
    assert all(variant.error < 1e-5 for variant in answer.variants.values())
    assert all(len(prepared.outputs()) == 2 for prepared in ready.values())


def test_functions_that_are_not_certified_are_timed_with_instant_answers(
    service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_URL", service.url)
    files = written(tmp_path, with_onnx=False)
    serve(service)
    answer, _ = prepare(OURS.module, [], files, 1, None)
    assert (answer.variants.keys(), answer.failures) == ({"compile"}, {})
    choices = r'(, \d+ first choices? of tune="instant", uncertified)?'  # where they are faster than unscheduled
    found = re.fullmatch(r"0 of (\d+) functions tuned" + choices, answer.variants["compile"].note)
    assert found is not None, answer.variants
    serve(service, *(best_json(each, None) for each in _functions(service)))
    answer, _ = prepare(OURS.module, [], files, 1, None)
    assert answer.variants["compile"].note == f"0 of {found[1]} functions tuned, {found[1]} best as TVM compiles them"


def _functions(service: FakeService) -> list[str]:
    """The workloads of which the service was asked last: those of fewer fused parts, too."""
    asked: list[str] = [each for each in service.requests if each.path == LOOKUP][-1].json()["functions"]
    return asked


def test_an_engine_that_computes_something_else_has_no_variant(tmp_path: Path) -> None:
    files = written(tmp_path, with_onnx=False)
    files.write(files.inputs, [each + 1 for each in files.expected])
    answer, ready = prepare(PYTORCH.module, ["torch"], Files.read(tmp_path), 1, None)
    assert not ready
    assert "differs from the reference" in answer.failures["contiguous"]


def test_a_model_of_tvm_is_called_with_inputs_that_are_drawn(tmp_path: Path) -> None:
    files, reference = writing.write(tmp_path, Model(PERCEPTRON), "auto", with_onnx=True)
    assert reference == "unscheduled TVM"
    target = target_from("llvm")
    looked_up = LookedUp(lower(Program(module_from_script(PERCEPTRON)), target), target, {})
    complete = writing.complete(files, looked_up, Model(PERCEPTRON))
    assert (complete.precision, complete.tolerance) == ("f32", 1e-3)
    assert len(complete.inputs) == len(looked_up.module["main"].params)
    assert all(np.isfinite(array).all() for array in complete.expected)
    again = writing.complete(files, looked_up, Model(PERCEPTRON))
    assert all(map(np.array_equal, again.inputs, complete.inputs))
    with pytest.raises(NoForm, match="PyTorch"):
        complete.torch_module()
    answer, _ = prepare(RIVALS["ort"].module, ["onnxruntime"], complete, 1, None)
    assert "compare its .onnx file" in answer.failures[""]


def test_a_model_of_onnx_is_called_with_its_example_inputs(tmp_path: Path) -> None:
    values = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 4]) for name in "xy"]
    graph = oh.make_graph([oh.make_node("Sqrt", ["x"], ["y"])], "roots", values[:1], values[1:])
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=10)
    target, x = target_from("llvm"), np.full((2, 4), 9, "float32")
    for extent, is_taken in ((2, True), (3, False)):
        source = Model(model, example_inputs=[x], shapes={"n": extent})
        files, _ = writing.write(tmp_path, source, "auto", with_onnx=True)
        looked_up = LookedUp(lower(frontends.to_program(source), target), target, {})
        if is_taken:
            complete = writing.complete(files, looked_up, source)
            np.testing.assert_array_equal(complete.inputs, [x])
            np.testing.assert_array_equal(complete.expected, [np.full((2, 4), 3)])
        else:
            with pytest.raises(ValueError, match=r"\(2, 4\).*takes \[\(3, 4\)\]"):
                writing.complete(files, looked_up, source)


def test_a_module_of_functions_alone_cannot_be_called_as_a_model(tmp_path: Path) -> None:
    files, _ = writing.write(tmp_path, Model(MM_RELU), "auto", with_onnx=False)
    target = target_from("llvm")
    looked_up = LookedUp(lower(Program(module_from_script(MM_RELU)), target), target, {})
    with pytest.raises(ValueError, match="main"):
        writing.complete(files, looked_up, Model(MM_RELU))


def test_a_program_with_symbolic_extents_is_taken_at_its_example_inputs(tmp_path: Path) -> None:
    batch = {0: torch.export.Dim("batch")}
    program = torch.export.export(nn.Linear(8, 4).eval(), (torch.ones(3, 8),), dynamic_shapes=(batch,))
    files, _ = writing.write(tmp_path, Model(program), "auto", with_onnx=True)
    assert [array.shape for array in files.inputs] == [(3, 8)]
    answer, _ = prepare(RIVALS["ort"].module, ["onnxruntime"], files, 1, None)
    assert answer.variants, answer.failures
    with pytest.raises(ValueError, match="shapes"):
        writing.write(tmp_path, Model(program, shapes={"batch": 5}), "auto", with_onnx=False)


@pytest.mark.whole
def test_a_low_precision_is_compared_as_such(tmp_path: Path) -> None:
    model, x = nn.Linear(8, 4).to(torch.bfloat16), torch.ones(2, 8, dtype=torch.bfloat16)
    files, _ = writing.write(tmp_path, Model(model.eval(), example_inputs=(x,)), "auto", with_onnx=True)
    assert (files.precision, files.tolerance) == ("bf16", 3e-2)
    for engine in (PYTORCH, OPENVINO):
        answer, _ = prepare(engine.module, list(engine.packages), files, 1, None)
        assert answer.variants, answer.failures


def test_onnx_is_said_to_be_missing_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxscript" else find(name))
    files = written(tmp_path)
    with pytest.raises(NoForm, match="onnxscript"):
        _ = files.graphs


def played(tmp_path: Path, source: str, name: str = "other") -> tuple[EngineInfo, dict[str, str]]:
    """An engine whose module is written for a test, and the environment in which it is found."""
    (tmp_path / f"engine_{name}.py").write_text(source)
    return EngineInfo(name, name.title(), f"engine_{name}", ("numpy",), (name,)), {"PYTHONPATH": str(tmp_path)}


FAST = """
import time
from loopwright.comparing.engines.engine import Prepared
def variants(given, threads):
    yield "fast", lambda: Prepared(lambda: time.sleep(0.001), lambda: given.expected, "as told")
    yield "slow", lambda: Prepared(lambda: time.sleep(0.004), lambda: given.expected)
"""
DIES = """
import os, time
from loopwright.comparing.engines.engine import Prepared
until = time.monotonic() + 1.5
def call():
    time.sleep(0.001)
    if time.monotonic() > until:
        print("no more memory", file=__import__("sys").stderr, flush=True)
        os._exit(9)
def variants(given, threads):
    yield "x", lambda: Prepared(call, lambda: given.expected)
"""


def compared(files: Files, found: list[EngineInfo], environment: dict[str, str], **amount: int) -> list[Any]:
    rounds = replace(compare.Rounds(processes=2, rounds=2), **amount)
    result = compare.compare(files, found, environment, rounds, reference="PyTorch", say=lambda text: None)
    assert schemas.Comparison.model_validate_json(result.model_dump_json()) == schemas.Comparison(**dict(result))
    return result.engines


@pytest.mark.whole
def test_the_fastest_setting_of_an_engine_is_timed(tmp_path: Path) -> None:
    engine, environment = played(tmp_path, FAST)
    (found,) = compared(written(tmp_path, with_onnx=False), [engine], environment)
    assert (found.setting, found.note, found.failure) == ("fast", "as told", None)
    assert [len(rounds) for rounds in found.run_secs] == [2, 2]
    assert found.us >= 1000  # it sleeps for a millisecond


def test_an_engine_that_is_not_installed_is_named_with_how_to_install_it(tmp_path: Path) -> None:
    missing = replace(RIVALS["ort"], module="loopwright.no_such_engine")
    (found,) = compared(written(tmp_path, with_onnx=False), [missing], {})
    assert found.us is None
    assert "no_such_engine" in found.failure
    assert found.install == "pip install onnxruntime onnx onnxscript"


def test_a_process_that_dies_costs_its_engine_alone(tmp_path: Path) -> None:
    dies, environment = played(tmp_path, DIES, "dies")
    lives, _ = played(tmp_path, FAST, "lives")
    found = compared(written(tmp_path, with_onnx=False), [lives, dies], environment, rounds=12, processes=1)
    assert found[0].us is not None
    assert found[1].us is None
    assert "status 9" in found[1].failure
    assert "no more memory" in found[1].failure


@pytest.mark.whole
def test_without_a_service_the_other_engines_are_timed(tmp_path: Path) -> None:
    unreachable = {"LOOPWRIGHT_URL": "http://127.0.0.1:9", "LOOPWRIGHT_TOKEN": "x"}
    found = compared(written(tmp_path, with_onnx=False), [OURS, PYTORCH], unreachable, processes=1, rounds=1)
    assert "CouldNotReach" in found[0].failure
    assert found[1].us is not None
    assert found[1].ratio is None


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(ValueError, match=r"tensorrt.* openvino"):
        compare.engines_named(["torch", "tensorrt"])
    assert [each.name for each in compare.engines_named(["tvm", "tvm"])] == ["loopwright", "tvm"]
    assert set(engines.RIVALS) == {"torch", "compile", "ort", "openvino", "tvm"}


def test_outputs_are_compared_where_they_are_finite() -> None:
    inf = float("inf")
    expected = [np.array([2.0, -inf, np.nan])]
    assert largest_error([np.array([2.5, -inf, np.nan])], expected) == 0.25
    assert largest_error([np.array([2.0, inf, np.nan])], expected) == inf
    assert largest_error([np.zeros(3)], [np.zeros(3)]) == 0
    assert largest_error([np.zeros((0, 2))], [np.zeros((0, 2))]) == 0
    with pytest.raises(ValueError, match="shapes"):
        largest_error([np.zeros(3)], [np.zeros(3), np.zeros(3)])


@pytest.mark.whole
def test_a_saved_program_whose_classes_are_not_imported_is_loaded(tmp_path: Path) -> None:
    """Models of transformers return objects of classes, which PyTorch knows once their module is imported."""
    saved = tmp_path / "model.pt2"
    script = (
        "import torch, sys\n"
        "from transformers import BertConfig, BertModel\n"
        "config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,"
        " vocab_size=10)\n"
        "made = torch.export.export(BertModel(config).eval(), (), {'input_ids': torch.ones(1, 4, dtype=torch.long)})\n"
        "torch.export.save(made, sys.argv[1])\n"
    )
    read = (
        "import sys\n"
        "from pathlib import Path\n"
        "from loopwright.comparing import writing\n"
        "from loopwright import Model\n"
        "files, _ = writing.write(Path(sys.argv[2]), Model(Path(sys.argv[1])), 'auto', with_onnx=False)\n"
        "print(files.expected[0].shape)\n"
    )
    folder = tmp_path / "written"
    folder.mkdir()
    assert ran(script, str(saved)).returncode == 0
    done = ran(read, str(saved), str(folder))
    assert done.stdout.strip() == "(1, 4, 8)", done.stderr
    assert "Ran into" not in done.stderr
    # What was written for the engines knows no such class.
    plain = ran("import torch, sys; torch.export.load(sys.argv[1])", str(folder / "model.pt2"))
    assert plain.returncode == 0, plain.stderr


def ran(script: str, *words: str) -> Any:
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=300)


def test_a_file_that_is_no_program_is_refused_with_the_reason(tmp_path: Path) -> None:
    broken = tmp_path / "model.pt2"
    broken.write_text("weights")
    with pytest.raises(UnsupportedModel, match=r"model\.pt2"):
        writing.write(tmp_path, Model(broken), "auto", with_onnx=False)


def task(name: str, share: float | None, baseline: float | None, error: str | None = None) -> schemas.Task:
    return schemas.Task(
        workload_hash=name, name=name, weight=1, state="succeeded", trials=0, baseline_us=baseline, best_us=1.0,
        speedup=1.0, certified=True, answered_from="search", record_id=None, failures={}, error=error,
        model_share=share, budget_share=None, library=None,
    )  # fmt: skip


MODEL = [
    task("tiny", 0.004, 1),
    task("was large", 0.005, 500),
    task("large", 0.6, 400),
    task("middle", 0.3, 90),
    task("failed", 0.001, 0.1, "no candidate ran"),
    task("small", 0.09, 9),
]


def test_tasks_come_by_their_share_of_the_models_time_and_trivial_ones_apart() -> None:
    shown, folded = by_share(MODEL)
    assert [each.name for each in shown] == ["large", "middle", "small", "was large", "failed"]
    assert [each.name for each in folded] == ["tiny"]
    assert in_one_line(folded) == "1 more task with 0.4% of the model's time together"
    assert by_share([*MODEL, task("unknown", None, None)])[1] == []
    assert by_share(MODEL[:5])[1] == []


def test_a_comparison_is_shown_in_notebooks() -> None:
    found = Comparison.model_validate(comparison())
    assert "A CPU, 2 threads, f32" in found._repr_html_()
    assert list(found.to_pandas()["name"]) == ["loopwright", "torch", "ort"]
