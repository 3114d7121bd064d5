"""Ways in: each front end turns one kind of model into the module that is sent.

A front end is a module with ``ACCEPTS`` (in words), ``accepts(model)``, which imports nothing, ``OPTIONS`` (which of
the options of a `Model` it reads) and ``to_program(model)``. One whose models are text also has ``to_payload(model)``.
One that binds the extents in ``Model.fixed`` before it translates a model says so by ``BINDS_SHAPES``.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import PurePath
from types import ModuleType
from typing import Any

from loopwright import schemas
from loopwright.extras import require_tvm
from loopwright.frontends import onnx, relax_nn, te, torch, tvm_module, tvmscript
from loopwright.frontends.program import Program
from loopwright.model import Model, as_model

FRONTENDS: tuple[ModuleType, ...] = (tvm_module, torch, onnx, relax_nn, te, tvmscript)

_WEIGHTS = frozenset({".bin", ".ckpt", ".gguf", ".h5", ".npz", ".pt", ".pth", ".safetensors"})
"""How files end that hold weights, and no program that uses them."""


def to_payload(model: Any) -> schemas.ModulePayload:
    """Return a model, which is a `Model` or needs no options, in the form in which it is sent: without its weights.

    Raises:
        TypeError: no front end accepts the model, or an option is missing or not for it.
        UnsupportedModel: the model is of an accepted kind, but cannot become a module; the message names the part.
        FileNotFoundError: the model is the path of a file that does not exist.
    """
    model = as_model(model)
    frontend = _frontend_of(model)
    if frontend is tvmscript:
        return tvmscript.to_payload(model.model)
    program = to_program(model)
    from loopwright.codegen.serialization import module_to_json

    return schemas.ModulePayload(format="tvm-json", data=module_to_json(program.module))


def to_program(model: Any) -> Program:
    """Return a model, which is a `Model` or needs no options, as a module on this machine, and its weights.

    The module has its symbolic extents, but for those that the front end binds (`Program.bind` binds the others), and
    no attribute of exact math or TF32. Raises as `to_payload` does, and TvmUnavailable.
    """
    model = as_model(model)
    frontend = _frontend_of(model)
    require_tvm()
    from loopwright.codegen.graph.int8_rows import permit_int8_activations
    from loopwright.codegen.graph.winograd import switched_off
    from loopwright.codegen.weights.shared_weights import share_weights

    with switched_off() if model.keeps_sums else nullcontext():
        program: Program = frontend.to_program(model)
    module = share_weights(program.module) if model.shares_weights else program.module
    module = permit_int8_activations(module) if model.int8_activations else module
    return replace(program, module=module, bound=bound(model))


def bound(model: Model) -> frozenset[str]:
    """Return the names of the symbolic extents that the front end of a model binds."""
    return frozenset(model.fixed) if getattr(_frontend_of(model), "BINDS_SHAPES", False) else frozenset()


def _frontend_of(source: Model) -> ModuleType:
    model = source.model
    if isinstance(model, str | os.PathLike) and PurePath(model).suffix in _WEIGHTS:
        raise TypeError(
            f"{os.fspath(model)} holds weights, not a model; make the model, load them into it, and pass it, or a .pt2 "
            "file that torch.export.save wrote"
        )
    for frontend in FRONTENDS:
        if frontend.accepts(model):
            for name in ("example_inputs", "spec", "state"):
                if getattr(source, name) is not None and name not in frontend.OPTIONS:
                    takers = " or ".join(str(each.ACCEPTS) for each in FRONTENDS if name in each.OPTIONS)
                    raise TypeError(f"{name} is not for {frontend.ACCEPTS}, but for {takers} alone; leave it out")
            return frontend
    accepted = "; ".join(str(frontend.ACCEPTS) for frontend in FRONTENDS)
    raise TypeError(f"cannot take a {type(model).__module__}.{type(model).__qualname__}; accepted are: {accepted}")
