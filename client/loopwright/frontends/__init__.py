"""Ways in: each front end turns one kind of model into the module that is sent.

A front end is a module with ``ACCEPTS`` (in words), ``accepts(model)``, which imports nothing, ``OPTIONS`` (which of
`Options` it reads) and ``to_program(model, options)``. One whose models are text also has ``to_payload(model)``.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import PurePath
from types import ModuleType
from typing import Any

from loopwright.extras import require_tvm
from loopwright.frontends import onnx, relax_nn, te, torch, tvm_module, tvmscript
from loopwright.program import Program
from loopwright.schemas import ModulePayload

FRONTENDS: tuple[ModuleType, ...] = (tvm_module, torch, onnx, relax_nn, te, tvmscript)

_WEIGHTS = frozenset({".bin", ".ckpt", ".gguf", ".h5", ".npz", ".pt", ".pth", ".safetensors"})
"""How files end that hold weights, and no program that uses them."""


@dataclass(frozen=True, slots=True)
class Options:
    """What some kinds of models need to be told apart from themselves.

    ``example_inputs``: a tuple of tensors that a PyTorch model is called with. ``spec``: method, then input, then
    ``nn.spec.Tensor`` of a Relax ``nn.Module``, as its ``export_tvm`` takes it.
    """

    example_inputs: Any = None
    spec: Any = None


def to_payload(model: Any, options: Options = Options()) -> ModulePayload:
    """The model as it is sent: without its weights.

    Raises:
        TypeError: no front end takes it, the message lists what is accepted; or an option is missing or not for it.
        UnsupportedModel: it is of an accepted kind, but cannot be turned into a module; the message says what of it.
        FileNotFoundError: it is the path of a file that does not exist.
    """
    frontend = _frontend_of(model, options)
    if frontend is tvmscript:
        return tvmscript.to_payload(model)
    program = frontend.to_program(model, options)
    require_tvm()
    from loopwright.codegen.serialization import module_to_json

    return ModulePayload(format="tvm-json", data=module_to_json(program.module))


def to_program(model: Any, options: Options = Options()) -> Program:
    """The model as a module on this machine, its weights apart. Raises as `to_payload` does, and TvmUnavailable."""
    program: Program = _frontend_of(model, options).to_program(model, options)
    return program


def exactly(exact_math: bool) -> AbstractContextManager[object]:
    """Return a context in which models become modules without Winograd's convolutions, if ``exact_math`` is set.

    So do those that permit TF32: Winograd's transformations would multiply its rounding errors.

    Text, which needs no TVM here, has none in either case.
    """
    if not exact_math or importlib.util.find_spec("tvm") is None:
        return nullcontext()
    require_tvm()
    from loopwright.codegen.graph.winograd import switched_off

    return switched_off()


def _frontend_of(model: Any, options: Options) -> ModuleType:
    if isinstance(model, str | os.PathLike) and PurePath(model).suffix in _WEIGHTS:
        raise TypeError(
            f"{os.fspath(model)} holds weights, not a model; make the model, load them into it, and pass it, or a .pt2 "
            "file that torch.export.save wrote"
        )
    for frontend in FRONTENDS:
        if frontend.accepts(model):
            for field in dataclasses.fields(options):
                if getattr(options, field.name) is not None and field.name not in frontend.OPTIONS:
                    raise TypeError(f"{field.name} is not for {frontend.ACCEPTS}; leave it out")
            return frontend
    accepted = "; ".join(str(frontend.ACCEPTS) for frontend in FRONTENDS)
    raise TypeError(f"cannot take a {type(model).__module__}.{type(model).__qualname__}; accepted are: {accepted}")
