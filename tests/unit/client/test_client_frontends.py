"""Ways in: what is accepted, and what is sent of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from tvm_ffi import structural_equal

from loopwright import frontends
from loopwright.codegen import versions
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_list
from loopwright.codegen.target import target_from
from loopwright.errors import TvmUnavailable, UnsupportedModel
from loopwright.extras import require_tvm
from loopwright.frontends import stochastic
from loopwright.model import Model
from tests.support.programs import MM_RELU, schedule_mm_relu


@pytest.fixture(scope="module")
def mod() -> tvm.IRModule:
    return frontends.to_program(MM_RELU).module


def test_text_is_sent_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "mm.py"
    path.write_text(MM_RELU)
    for model in (MM_RELU, path, str(path)):
        payload = frontends.to_payload(model)
        assert (payload.format, payload.data) == ("tvmscript", MM_RELU)


def test_tvm_json_is_sent_as_it_stands(tmp_path: Path, mod: tvm.IRModule) -> None:
    text = module_to_json(mod)
    path = tmp_path / "mm.json"
    path.write_text(text)
    for model in (text, path, str(path)):
        payload = frontends.to_payload(model)
        assert (payload.format, payload.data) == ("tvm-json", text)
        assert structural_equal(frontends.to_program(model).module, mod)


def test_tvm_objects_are_sent_as_json(mod: tvm.IRModule) -> None:
    for model in (mod, mod["main"]):
        payload = frontends.to_payload(model)
        assert payload.format == "tvm-json"
        assert structural_equal(module_from_json(payload.data)["main"], mod["main"])


def test_a_function_without_a_name_becomes_main(mod: tvm.IRModule) -> None:
    sent = frontends.to_program(mod["main"].without_attr("global_symbol")).module
    assert [var.name_hint for var in sent.get_global_vars()] == ["main"]


def test_what_is_not_accepted_is_told_what_is() -> None:
    with pytest.raises(TypeError, match=r"int.*TVMScript"):
        frontends.to_payload(3)


@pytest.mark.parametrize("name", ["no.py", "no.json"])
def test_a_missing_file_is_not_taken_for_a_program(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError):
        frontends.to_payload(str(tmp_path / name))


@pytest.mark.parametrize("name", ["model.safetensors", "weights.pt", "pytorch_model.bin", "last.ckpt"])
def test_weights_are_not_taken_for_a_program(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0weights")
    for path in (tmp_path / name, str(tmp_path / name)):
        with pytest.raises(TypeError, match=name):
            frontends.to_payload(path)


def test_an_empty_program_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        frontends.to_payload(" \n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import torch\n\nnet = torch.nn.Linear(3, 4)\n", r"line 3: .*torch.*script\.py:NAME"),
        ("# nothing\nimport os\n", r"it defines no function"),
    ],
)
def test_a_python_file_that_is_no_tvmscript_is_refused_with_the_line(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "model.py"
    file.write_text(text)
    with pytest.raises(UnsupportedModel, match=f"this is no TVMScript .*{reason}"):
        frontends.to_program(Model(file))


def test_a_function_travels_as_an_open_trace(mod: tvm.IRModule) -> None:
    traces = stochastic.to_traces(schedule_mm_relu, MM_RELU)
    assert traces is not None
    [[instructions, decisions]] = traces
    assert decisions == []
    assert [instruction[0] for instruction in instructions] == [
        "GetSBlock", "GetLoops", "SamplePerfectTile", "Split", "Parallel", "Split", "Reorder", "Vectorize",
    ]  # fmt: skip
    # Replayed, it makes its choices anew.
    drawn = set()
    for seed in range(1, 20):
        schedule = Schedule(mod, seed=seed)
        Trace.apply_json_to_schedule([instructions, decisions], schedule)
        drawn.add(str(schedule.trace.as_json()[1]))
    assert len(drawn) > 1


def test_a_function_of_a_renamed_program_speaks_of_main(mod: tvm.IRModule) -> None:
    renamed = tvm.IRModule({"other": mod["main"].with_attr("global_symbol", "other")})
    assert stochastic.to_traces(schedule_mm_relu, renamed) == stochastic.to_traces(schedule_mm_relu, mod)


def test_a_function_may_name_the_program_and_use_earlier_words(mod: tvm.IRModule) -> None:
    def schedule(sch: Schedule) -> None:
        sch.parallel(sch.get_loops(sch.get_block("Y", "mm"))[0])

    named = tvm.IRModule({"mm": mod["main"].with_attr("global_symbol", "mm")})
    with pytest.warns(DeprecationWarning, match="get_sblock"):
        [[instructions, _]] = stochastic.to_traces(schedule, named) or []
    assert instructions[0] == ["GetSBlock", [], ["Y", "main"], ["b0"]]
    theirs = Schedule(named)
    theirs.work_on("mm")
    theirs.parallel(theirs.get_loops(theirs.get_sblock("Y"))[0])
    assert stochastic.to_traces(theirs.trace, named) == [[instructions, []]]


def test_tracing_leaves_the_program_alone(mod: tvm.IRModule) -> None:
    before = mod.script()
    stochastic.to_traces(schedule_mm_relu, mod)
    stochastic.to_traces(schedule_mm_relu, mod["main"])
    assert mod.script() == before


def test_traces_are_passed_on(mod: tvm.IRModule) -> None:
    schedule = Schedule(mod, seed=1)
    schedule_mm_relu(schedule)
    as_json = trace_to_list(schedule.trace)
    assert as_json[1] != []
    for space in (as_json, [as_json], schedule.trace, [schedule.trace]):
        assert stochastic.to_traces(space, mod) == [as_json]
    assert stochastic.to_traces(None, mod) is None


@pytest.mark.parametrize("space", [3, "trace", [1, 2], [[1], 2], {"a": 1}])
def test_what_is_no_space_is_refused(space: object) -> None:
    with pytest.raises(TypeError, match="space"):
        stochastic.to_traces(space, MM_RELU)


def test_an_empty_space_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        stochastic.to_traces([], MM_RELU)


def test_one_function_fits_one_program(mod: tvm.IRModule) -> None:
    two = tvm.IRModule({name: mod["main"].with_attr("global_symbol", name) for name in ("a", "b")})
    with pytest.raises(ValueError, match="2"):
        stochastic.to_traces(schedule_mm_relu, two)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("llvm", {"kind": "llvm"}),
        ('{"kind": "llvm", "num-cores": 2}', {"kind": "llvm", "num-cores": 2}),
        ("llvm -mcpu=znver4 -num-cores 2 -mattr=+avx2,+fma", {"mcpu": "znver4", "num-cores": 2}),
    ],
)
def test_targets_are_read_in_every_form(text: str, fields: dict[str, object]) -> None:
    exported = dict(target_from(text).export())
    assert {name: exported[name] for name in fields} == fields


def test_another_tvm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(versions.PINS, "apache-tvm-ffi", "0.0.1")
    with pytest.raises(TvmUnavailable, match=r"apache-tvm-ffi==0\.0\.1"):
        require_tvm()


def test_importing_is_light() -> None:
    script = (
        "import sys, loopwright.client;"
        "loopwright.client.Client('http://localhost:1');"
        "assert not {'pydantic', 'httpx', 'ssl', 'loopwright.schemas.base'} & set(sys.modules), 'what requests need';"
        "assert not {'loopwright.jobs.progress', 'xml.etree.ElementTree'} & set(sys.modules), 'what few calls need';"
        "assert not loopwright.schemas.Job.__pydantic_complete__, 'a schema is built when it is used';"
        "import loopwright.cli; print(loopwright.__version__);"
        "assert not {'tvm', 'tvm_ffi', 'numpy', 'pandas', 'torch'} & set(sys.modules), 'heavy'"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
