"""Models that compute something else in each call: they change their buffers or attributes, or draw random numbers.

A compiled function has no state, so that such a model is refused, unless its buffers are inputs and outputs
(`loopwright.frontends.torch.buffers`).
"""

from __future__ import annotations

import copy
import importlib
import logging
import random
import sys
from collections.abc import Callable
from typing import Any

from loopwright.errors import UnsupportedModel

_SWITCHES = frozenset({"train", "training"})
"""Arguments of operators that draw nothing if they are false."""
_PROBABILITIES = frozenset({"dropout", "dropout_p", "p"})
"""Arguments of operators that draw nothing if they are 0."""

log = logging.getLogger("loopwright")


def isolated(model: Any) -> Any:
    """Return a copy of a module that has the same parameters, and buffers and attributes of its own.

    Raises:
        UnsupportedModel: the module cannot be copied.
    """
    try:
        return copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    except Exception as error:
        raise UnsupportedModel(
            f"{type(model).__name__} cannot be copied by copy.deepcopy, and its own state must not change while it is "
            f"captured: {error}; give a torch.export.ExportedProgram of it"
        ) from error


def run(model: Any, call: Callable[[], Any]) -> Any:
    """Return what ``call`` returns, which calls a copy of a module; the generators of random numbers keep their state.

    Raises:
        UnsupportedModel: the call draws from Python's or NumPy's generator, or changes numbers or plain tensors among
            the module's attributes again and again. Neither is in the graph that PyTorch exports.
    """
    torch = importlib.import_module("torch")
    drawn, before = _generators(), _attributes(model)
    with torch.random.fork_rng(devices=[]):
        try:
            outputs = call()
            draws = [name for name, state in _generators().items() if repr(state) != repr(drawn.get(name, state))]
            # What is computed once, at the first call, stays the same afterwards.
            once = _attributes(model)
            if once != before:
                call()
            changed = sorted(name for name, value in _attributes(model).items() if once.get(name, value) != value)
        finally:
            _restore(drawn)
    name = type(model).__name__
    if draws:
        raise UnsupportedModel(
            f"{name} draws random numbers from {' and '.join(draws)}, and a compiled function has none; call .eval() "
            "on it first if it is in training mode, or give the random numbers as an input"
        )
    if changed:
        raise UnsupportedModel(
            f"{name} changes its own {', '.join(changed)} whenever it is called, and a compiled function keeps no "
            "state; take the value as an input and return the new one as an output, or make it a buffer "
            '(register_buffer) and give state="functional"'
        )
    return outputs


def check(program: Any) -> None:
    """Raise an `UnsupportedModel` unless a decomposed exported program computes the same in each call.

    A warning says which inputs it changes in place: its results do not depend on what becomes of them.
    """
    signature = program.graph_signature
    if written := sorted(set(signature.user_inputs_to_mutate.values())):
        log.warning(
            "the model changes its input %s in place; the compiled model leaves it as it is: return the new value if "
            "you need it",
            " and ".join(written),
        )
    targets = {
        **signature.buffers_to_mutate,
        **getattr(signature, "parameters_to_mutate", {}),
    }
    if changed := sorted(set(targets.values())):
        raise UnsupportedModel(
            f"the model changes its own {', '.join(changed)} whenever it is called, and a compiled function keeps no "
            'state; call .eval() on it first if it is in training mode, or give state="functional": then its buffers '
            "are inputs and outputs of the program, and the compiled model keeps them"
        )
    for part in program.graph_module.modules():
        for node in getattr(getattr(part, "graph", None), "nodes", ()):
            if node.users and _draws(node):
                raise UnsupportedModel(
                    f"the model draws random numbers ({node.target}), and a compiled function has none; call .eval() "
                    "on it first if it is in training mode, or give the random numbers as an input"
                )


def _draws(node: Any) -> bool:
    torch = importlib.import_module("torch")
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    parameters = node.target._schema.arguments
    values = {parameter.name: parameter.default_value for parameter in parameters}
    values.update(zip((parameter.name for parameter in parameters), node.args, strict=False))
    values.update(node.kwargs)
    switched_off = any(values[name] is False for name in _SWITCHES & values.keys())
    return not switched_off and not any(values[name] in (0, None) for name in _PROBABILITIES & values.keys())


def _generators() -> dict[str, Any]:
    """Return the states of generators that PyTorch does not know, by their names."""
    numpy = sys.modules.get("numpy")
    states: dict[str, Any] = {"Python's random": random.getstate()}
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        states["NumPy's random"] = (kind, keys.tobytes(), *rest)
    return states


def _restore(states: dict[str, Any]) -> None:
    random.setstate(states["Python's random"])
    if "NumPy's random" in states:
        numpy = importlib.import_module("numpy")
        kind, keys, *rest = states["NumPy's random"]
        numpy.random.set_state((kind, numpy.frombuffer(keys, numpy.uint32), *rest))


def _attributes(model: Any) -> dict[str, Any]:
    """Return numbers among the attributes of modules, and how often their plain tensors were written, by name."""
    torch = importlib.import_module("torch")
    values: dict[str, Any] = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            full = f"{path}.{name}".strip(".")
            if isinstance(value, bool | int | float):
                values[full] = value
            elif isinstance(value, torch.Tensor) and not value.is_inference():
                values[full] = (id(value), value._version)
    return values
