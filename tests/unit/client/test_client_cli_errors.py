"""What goes wrong on the command line is said in words, before anything takes long, and by the exit status."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from loopwright.frontends import tvmscript
from loopwright.model import Model
from loopwright.session import config
from tests.support.programs import MM_RELU
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import Answer, FakeService, page


def relu() -> bytes:
    """An ONNX model of one operator."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xy")
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y]))
    data: bytes = model.SerializeToString()
    return data


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cut.onnx", relu()[:-3], "no whole ONNX model"),
        ("empty.onnx", b"", "it has no graph"),
        ("text.onnx", b"not a model", "no whole ONNX model"),
        ("empty.pt2", b"", "no program that torch.export.save wrote"),
        ("empty.py", b" \n", "is empty"),
        ("model.tflite", b"\x1c\x00\x00\x00TFL3\xff\xfe", "is not text"),
        ("weights.safetensors", b"{}", "holds weights"),
    ],
)
def test_a_file_that_is_no_model_has_status_2_and_is_named(
    run: Command, service: FakeService, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    done = run("job", "submit", str(path))
    assert (done.status, done.out, service.requests) == (2, "", [])
    assert said in done.err
    assert name in done.err
    assert len(done.err.splitlines()) == 1


def test_a_model_whose_weights_are_missing_is_told_apart(run: Command, tmp_path: Path) -> None:
    model = onnx.load_from_string(relu())
    weight = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[1])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="lost.bin")
    path = tmp_path / "apart.onnx"
    path.write_bytes(model.SerializeToString())
    done = run("job", "submit", str(path))
    assert (done.status, "lost.bin" in done.err) == (2, True)


@pytest.mark.parametrize("text", ["{", '{"a": 1}', '{"root_index": 7, "nodes": []}'])
def test_json_that_is_no_module_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON of TVM"):
        tvmscript.to_program(Model(text))


@pytest.mark.parametrize("option", ["--junit", "--summary", "--record"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    run: Command, service: FakeService, tmp_path: Path, option: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(MM_RELU)
    for path, said in ((tmp_path, "is a directory"), (tmp_path / "none/file", "there is no directory")):
        done = run("check", str(program), "--against", "main", option, str(path))
        assert (done.status, service.requests) == (2, [])
        assert said in " ".join(done.err.split())


def test_a_space_that_is_no_json_is_named(run: Command, service: FakeService, tmp_path: Path) -> None:
    for name, content in (("program.py", MM_RELU.encode()), ("space.json", b"\xff[")):
        (tmp_path / name).write_bytes(content)
    done = run("job", "submit", str(tmp_path / "program.py"), "--space", str(tmp_path / "space.json"))
    assert (done.status, service.requests) == (2, [])
    assert "space.json is no JSON" in " ".join(done.err.split())


@pytest.mark.parametrize(
    "url", ["http://:80", "http://[::1", "http://host:port", "http://host:99999", "http://my host"]
)
def test_a_url_without_a_valid_host_and_port_is_refused(run: Command, url: str) -> None:
    done = run("--url", url, "job", "list")
    assert (done.status, "no valid host and port" in done.err) == (2, True)


def test_a_token_is_sent_as_it_was_copied_and_never_shown(
    run: Command, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.on("GET", "/api/v1/jobs", page())
    monkeypatch.setenv("LOOPWRIGHT_TOKEN", "secret\n")
    assert run("job", "list").status == 0
    assert service.requests[-1].headers["authorization"] == "Bearer secret"
    for token in ("sec\nret", "s\N{LATIN SMALL LETTER E WITH ACUTE}cret"):
        done = run("--token", token, "job", "list")
        assert (done.status, "the token has a character" in done.err) == (2, True)
        assert token not in done.err


def test_a_port_that_is_none_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen in ("http", "0", "65536"):
        monkeypatch.setenv("LOOPWRIGHT_PORT", chosen)
        with pytest.raises(ValueError, match=f"LOOPWRIGHT_PORT is '{chosen}'"):
            config.service_port()


def test_another_server_is_told_apart_in_one_line(run: Command, service: FakeService) -> None:
    service.on("GET", "/api/v1/jobs", Answer(b"<!doctype html><h1>welcome</h1>"))
    done = run("job", "list")
    assert done.status == 3
    assert "see whether the URL is that of a Loopwright service" in done.err
    assert len(done.err.splitlines()) == 1
