"""ONNX files out of wheels: what is drawn for them, and what their report keeps and says."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto

from benchmarks.models import files, report
from benchmarks.models.files import OnnxFile
from benchmarks.report import unpack

FILE = OnnxFile("some/model.onnx", "some", {"n": 3, "x_1": 2}, {"rate": range(8, 9)})


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a wheel in which the file is."""
    monkeypatch.setattr(files, "FILES", (FILE,))
    x, y = (oh.make_tensor_value_info(name, TensorProto.FLOAT, ["n", -1]) for name in "xy")
    rate = oh.make_tensor_value_info("rate", TensorProto.INT64, [])
    model = oh.make_model(oh.make_graph([oh.make_node("Relu", ["x"], ["y"])], "relu", [x, rate], [y]))
    with zipfile.ZipFile(tmp_path / "some-1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(FILE.path, model.SerializeToString())
    return tmp_path


def test_a_file_has_inputs_of_its_shapes_and_ranges(wheels: Path) -> None:
    [(file, version, path)] = files.found(wheels, None, wheels / "scratch")
    inputs = file.model(path).example_inputs
    assert (file.name, version) == ("model.onnx", "1.2")
    assert {name: (array.dtype, array.shape) for name, array in inputs.items()} == {
        "x": (np.float32, (3, 2)),
        "rate": (np.int64, ()),
    }
    assert inputs["rate"] == 8
    assert not list(files.found(wheels, ["other.onnx"], wheels))


def test_a_missing_wheel_is_named(wheels: Path) -> None:
    with pytest.raises(SystemExit, match=r"pip download --no-deps --dest .* some"):
        list(files.found(wheels / "scratch", None, wheels))


LINE: dict[str, Any] = {
    "file": "other.onnx",
    "wheel": "some",
    "version": "1.2",
    "shapes": {"n": 3},
    "conditions": {"cpu": "Some CPU", "threads": 2, "date": "2030-01-31"},
    "budget": 60.0,
    "state": "succeeded",
    "job_error": None,
    "notes": [],
    "tasks": [{"name": "dense", "certified": True, "trials": 4, "error": None}],
    "missing": [],
    "difference": 2e-6,
    "failure": "",
    "us": 120.0,
    "rival_us": 90.0,
    "ratio": [0.75, 0.7, 0.8],
}


def test_files_that_were_not_run_again_keep_their_results() -> None:
    kept = list(unpack(report.REPORT.results))
    lines = report.packed([LINE | {"us": 1.0}, LINE])
    assert lines[: len(kept)] == kept
    assert lines[len(kept) :] == [LINE]
    assert report.packed([{"models": [], "trials": 1}]) == [{"models": [], "trials": 1}, *kept[1:]]


def test_a_row_says_what_is_wrong_with_a_file() -> None:
    failed = LINE | {"tasks": [*LINE["tasks"], {"name": "conv", "certified": False, "trials": 0, "error": "no trial"}]}
    refused = {name: LINE[name] for name in ("file", "wheel", "version", "shapes", "conditions", "budget")}
    models = next(unpack(report.REPORT.results))
    page = report.REPORT.render([models, LINE, failed, refused | {"error": "no If"}])
    times = "120 µs | 90.0 µs | 0.75 (0.70 to 0.80)"
    assert f"| `other.onnx` | `n`: 3 | 60 s of search | 1 of 1 |  | 2.0e-06 | agrees | {times} |" in page
    assert "| 1 of 2 |  | 2.0e-06 | succeeded: conv |" in page
    assert "| no If |" in page
    assert "1 of 3 files are accepted" in page
    assert "No file has been measured" not in page
    assert "`some==1.2`" in page
