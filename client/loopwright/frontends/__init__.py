"""Ways in: each front end turns one kind of model into the module that is sent.

A front end is a module with ``ACCEPTS`` (in words), ``accepts(model)``, which imports nothing, ``to_payload(model)``
for the wire, and ``to_module(model)``, an IRModule for work on this machine.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from loopwright.frontends import tvm_module, tvmscript
from loopwright.schemas import ModulePayload

FRONTENDS: tuple[ModuleType, ...] = (tvm_module, tvmscript)


def to_payload(model: Any) -> ModulePayload:
    """The model as it is sent.

    Raises:
        TypeError: no front end takes it; the message lists what is accepted.
        FileNotFoundError: it is the path of a file that does not exist.
    """
    payload: ModulePayload = _frontend_of(model).to_payload(model)
    return payload


def to_module(model: Any) -> Any:
    """The model as an IRModule on this machine. Raises as `to_payload` does, and TvmUnavailable."""
    return _frontend_of(model).to_module(model)


def _frontend_of(model: Any) -> ModuleType:
    for frontend in FRONTENDS:
        if frontend.accepts(model):
            return frontend
    accepted = ", ".join(str(frontend.ACCEPTS) for frontend in FRONTENDS)
    raise TypeError(f"cannot take a {type(model).__module__}.{type(model).__qualname__}; accepted are: {accepted}")
