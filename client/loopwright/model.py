"""A model and the options with which it becomes a program, as one value that every method of `Client` takes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex, TypeAlias, TypedDict, get_args

from loopwright.codegen.math_mode import FP32, TF32, MathMode
from loopwright.shapes.plan import Extents, Portfolio, is_portfolio

StateMode = Literal["functional"]
Tune = Literal["instant"]
"""What is done about functions without a certified best: the prior's choice, checked and timed on this machine."""

Shapes: TypeAlias = dict[str, int] | list[dict[str, int]] | Portfolio | Extents


class OtherOptions(TypedDict, total=False):
    """The keyword arguments of `Model`, without ``shapes``."""

    example_inputs: Any
    spec: Any
    exact_math: bool
    math: MathMode
    state: StateMode | None
    shares_weights: bool
    int8_activations: bool


class ModelOptions(OtherOptions, total=False):
    """The keyword arguments of `Model`, for methods that take them beside a plain model."""

    shapes: Shapes | None


@dataclass(frozen=True, slots=True)
class Model:
    """A model and the options with which it becomes a program.

    Each method of `Client` that takes a model takes a `Model`, or a plain model with these options as keyword
    arguments. Results are found only for the same options: give the same `Model` to `Client.submit` and to
    `Client.compile`.

    Args:
        model: IRModule, PrimFunc, TVMScript text or .py path, TVM JSON text or path; a PyTorch module, exported
            program, FX graph or .pt2 path; an ONNX model or path; a Relax ``nn.Module``; a list of TE tensors. Its
            weights stay on this machine, but text is sent as it is, with the constants in it.
        example_inputs: the arguments of a call of a PyTorch module or FX graph: ``model(*example_inputs)``, or
            ``model(**example_inputs)`` for a dictionary. Inputs of an ONNX model, in order or by name, on which it is
            compared with ONNX Runtime; without them, it is on drawn numbers.
        spec: the inputs with which a Relax ``nn.Module`` is exported: method, then input, then ``nn.spec.Tensor``.
        shapes: values of symbolic extents, by name. `Client.submit` also takes a list of them, and tunes for each.
            `Client.submit`, `Client.compile` and `Client.plan_shapes` also take many values of one extent, as
            `loopwright.plan_shapes` describes them, or a `Portfolio`.
        exact_math: keep the C library's exp, tanh, erf and log, instead of polynomials that vectorise and have an error
            of a few units in the last place (CPU, float32), and the sums of convolutions, instead of Winograd's.
        math: ``"tf32"`` permits products and convolutions of float32 to round their factors to TF32, on GPUs of compute
            capability 8.0 or later. What is found answers only requests that permit it.
        state: ``"functional"`` takes PyTorch models that change their buffers: the program takes these buffers behind
            its inputs and returns their new values behind its outputs, and `Client.compile` returns a `StatefulModel`,
            which keeps them. Other models that change their buffers are refused.
        shares_weights: pack all weights in panels of one width (CPU), so that programs of one model for several shapes
            can have one copy of them, as those of a decoder do.
        int8_activations: round the activations that weights of at most 8 bits in blocks are multiplied by to int8, with
            a scale for each block, as llama.cpp does and ONNX Runtime with ``accuracy_level`` 4. Such products are
            faster, and off by some hundredths of the largest result.

    Raises:
        TypeError: ``model`` is a `Model`, or an extent in ``shapes`` is no whole number.
        ValueError: ``math`` or ``state`` is unknown, or ``state`` is given with many values of an extent.
    """

    model: Any
    """The plain model."""
    example_inputs: Any = None
    """The arguments of a call of a PyTorch module or FX graph, or the inputs of an ONNX model."""
    spec: Any = None
    """The inputs with which a Relax ``nn.Module`` is exported."""
    shapes: Shapes | None = None
    """The values of symbolic extents; plain integers, whatever library they came from."""
    exact_math: bool = False
    """Whether functions are those of the C library, and convolutions are not Winograd's."""
    math: MathMode = FP32
    """Whether factors may be rounded to TF32."""
    state: StateMode | None = None
    """Whether buffers that the model changes become inputs and outputs of its program."""
    shares_weights: bool = False
    """Whether weights are packed in panels of one width."""
    int8_activations: bool = False
    """Whether rows of products with weights of few bits in blocks are rounded to int8."""

    def __post_init__(self) -> None:
        if isinstance(self.model, Model):
            raise TypeError("model is a loopwright.Model already; change its options with dataclasses.replace")
        if self.math not in (modes := get_args(MathMode)):
            raise ValueError(f"math: should be {' or '.join(map(repr, modes))}, and is {self.math!r}")
        if self.state not in (None, *get_args(StateMode)):
            raise ValueError(f"state: should be 'functional' or left out, and is {self.state!r}")
        if self.state and is_portfolio(self.shapes):
            raise ValueError("state is for models of one shape, and shapes gives many values of an extent; give one")
        object.__setattr__(self, "shapes", _whole(self.shapes))

    @property
    def shape(self) -> dict[str, int]:
        """The one value of each symbolic extent; empty without ``shapes``.

        Raises:
            TypeError: ``shapes`` has several values of an extent.
        """
        shapes: Any = self.shapes or {}
        if isinstance(shapes, list) or is_portfolio(shapes):
            raise TypeError(
                f"shapes={shapes!r} should have one value of each extent here; only submit takes several, and compile "
                "takes them of one extent, as a range or with weights"
            )
        return dict(shapes)

    @property
    def fixed(self) -> dict[str, int]:
        """The extents that have one value in all of ``shapes``."""
        shapes: Any = self.shapes or {}
        if isinstance(shapes, list):
            first, *others = shapes
            return {n: extent for n, extent in first.items() if all(each.get(n) == extent for each in others)}
        extents = shapes.fixed if isinstance(shapes, Portfolio) else shapes
        return {name: operator.index(each) for name, each in extents.items() if isinstance(each, SupportsIndex)}

    @property
    def portfolio(self) -> Portfolio | Extents:
        """The many values of one extent in ``shapes``, or the plan for them.

        Raises:
            ValueError: ``shapes`` does not have many values of one extent.
        """
        if not is_portfolio(self.shapes):
            raise ValueError(
                f"shapes={self.shapes!r} should have many values of one extent, as {{'n': range(1, 257)}}; to tune for "
                "some shapes, give submit a list: [{'n': 1, 'm': 8}, {'n': 64, 'm': 8}]"
            )
        return self.shapes

    @property
    def keeps_sums(self) -> bool:
        """Whether convolutions are not Winograd's, whose transformations would also multiply the errors of TF32."""
        return self.exact_math or self.math == TF32


def as_model(model: Any, **options: Any) -> Model:
    """Return a `Model` as it is, and a plain model with its options as a `Model`.

    Raises:
        TypeError: options are given beside a `Model`, or one is unknown; else as `Model`.
        ValueError: as `Model`.
    """
    known = ModelOptions.__optional_keys__
    if unknown := sorted(options.keys() - known):
        raise TypeError(
            f"unexpected arguments: {', '.join(unknown)}; options of a model are {', '.join(sorted(known))}"
        )
    if not isinstance(model, Model):
        return Model(model, **options)
    if options:
        raise TypeError(
            f"{', '.join(options)} given beside a loopwright.Model, which has its own options; change them with "
            "dataclasses.replace(model, …)"
        )
    return model


def _whole(shapes: Any) -> Any:
    """Return shapes with extents as integers of Python, whatever library they came from."""
    if shapes is None or is_portfolio(shapes):
        return shapes
    if isinstance(shapes, list | tuple):
        return [_whole(each) for each in shapes]
    try:
        return {name: operator.index(extent) for name, extent in shapes.items()}
    except (AttributeError, TypeError):
        raise TypeError(f"shapes={shapes!r} should give a whole number for each name") from None
