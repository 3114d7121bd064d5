"""An ONNX model, called by ONNX Runtime, if it is installed, on its example inputs or on drawn ones."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopwright.frontends.precision import QUANTISED
from loopwright.frontends.reference import INFINITIES, Call, with_specials

_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({kind}int{bits})": f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True, slots=True)
class OnnxReference:
    """See `loopwright.frontends.reference.Reference`. ``model`` is an ``onnx.ModelProto``, or the path of a file.

    ``shapes`` are those of the inputs, by name; an extent is None if it is symbolic. ``examples`` are arrays by the
    names of all inputs, or there are none.
    """

    model: Any
    shapes: Mapping[str, Sequence[int | None]]
    examples: Mapping[str, Any] = field(default_factory=dict)
    name: str = "ONNX Runtime"

    def call(self, *, special: bool = False) -> Call | None:
        if importlib.util.find_spec("onnxruntime") is None:
            return None
        runtime, np = importlib.import_module("onnxruntime"), importlib.import_module("numpy")
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        try:
            model, is_quantised = self._exact()
            session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            generator = np.random.default_rng(0)
            feeds = dict(self.examples) or {each.name: self._drawn(each, generator) for each in session.get_inputs()}
            if any(array is None for array in feeds.values()):
                return None
            if special:  # without NaN, which several of its operators do not keep
                feeds = {
                    name: with_specials(array, INFINITIES) if np.issubdtype(array.dtype, np.floating) else array
                    for name, array in feeds.items()
                }
            outputs = session.run(None, feeds)
        except Exception:  # an operator that it lacks, more than fits into one message, or inputs that cannot be drawn
            return None
        if not all(isinstance(each, np.ndarray) for each in outputs):
            return None
        dtypes = frozenset(array.dtype.name for array in (*feeds.values(), *outputs) if array is not None)
        dtypes |= {QUANTISED} if is_quantised else set()

        @functools.cache
        def nudged() -> Sequence[Any]:
            ends = (-np.inf, np.inf)
            moved = {
                name: np.nextafter(array, generator.choice(ends, array.shape).astype(array.dtype))
                if np.issubdtype(array.dtype, np.floating)
                else array
                for name, array in feeds.items()
            }
            results: Sequence[Any] = session.run(None, moved)
            return results

        return Call(list(feeds.values()), outputs, dtypes, nudged)

    def _exact(self) -> tuple[Any, bool]:
        """Return the model as ONNX Runtime takes it, and whether it rounds activations to integers."""
        onnx = importlib.import_module("onnx")
        # It imports onnx.
        exactness = importlib.import_module("loopwright.frontends.onnx.exactness")
        is_file = isinstance(self.model, str | os.PathLike)
        graph = onnx.load(os.fspath(self.model), load_external_data=False) if is_file else self.model
        is_quantised = exactness.is_quantised(graph)
        if is_file and not exactness.multiplies_integers(graph):
            return self.model, is_quantised
        whole = onnx.load(os.fspath(self.model)) if is_file else self.model
        return exactness.exact(whole).SerializeToString(), is_quantised

    def _drawn(self, value: Any, generator: Any) -> Any:
        """Draw numbers from a standard normal distribution, and integers from 0 and 1, which may be indices.

        Returns None for an input of another type, or without a fixed shape.
        """
        shape = [extent for extent in self.shapes[value.name] if extent is not None]
        if value.type not in _DTYPES or len(shape) < len(self.shapes[value.name]):
            return None
        if "float" in _DTYPES[value.type]:
            return generator.standard_normal(shape).astype(_DTYPES[value.type])
        return generator.integers(0, 2, shape).astype(_DTYPES[value.type])
