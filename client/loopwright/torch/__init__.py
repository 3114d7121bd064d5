"""A backend of ``torch.compile`` that runs the best programs that a Loopwright service knows. For inference on CPUs.

    compiled = torch.compile(model, backend="loopwright", options={"tune": "background"})
    with torch.no_grad():
        compiled(x)

A graph runs as PyTorch runs it until there is something better: a program that computed the same from the inputs of
one call, and took less time, side by side.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch

from loopwright import schemas
from loopwright.client import Client
from loopwright.torch.graph import Graph
from loopwright.torch.variant import Outcome, Tune, Tuning

__all__ = ["Outcome", "backend", "outcomes", "refresh"]

_TUNE: tuple[Tune, ...] = ("background", "wait", "instant", "never")
_BUDGET = tuple(schemas.Budget.model_fields)
_graphs: weakref.WeakValueDictionary[int, Graph] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def backend(
    module: torch.fx.GraphModule, example_inputs: list[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Return what runs a graph. Dynamo calls it for ``torch.compile(model, backend="loopwright", options=…)``.

    These options are known:

    - ``tune``: what is done about functions of which the service knows nothing. ``"background"`` (default): they are
      submitted as one job, and calls after its end use what it found. ``"wait"``: the first call waits for that job.
      ``"instant"``: nothing is submitted, and such functions are scheduled by their rules, as in `Client.compile`; it
      needs no service. ``"never"``: nothing is submitted.
    - ``max_trials``, ``max_seconds``, ``max_device_seconds``, ``target_latency_us``, ``until``: the budget of a job, as
      `Client.submit` has it.
    - ``client``: a `Client`; by default one without arguments.

    Args:
        module: the graph.
        example_inputs: the inputs of its first call.
        options: see above; None: the defaults.

    Raises:
        ValueError: an option is unknown, or cannot be what was given.
    """
    rest = dict(options or {})
    tune = rest.pop("tune", "background")
    if tune not in _TUNE:
        raise ValueError(f"tune is {tune!r}; it may be {', '.join(map(repr, _TUNE))}")
    client = rest.pop("client", None) or _own_client()
    budget: dict[str, Any] = {name: rest.pop(name) for name in _BUDGET if name in rest}
    if rest:
        known = ", ".join(("tune", *_BUDGET, "client"))
        raise ValueError(f"unknown options: {', '.join(sorted(rest))}; known are {known}")
    graph = Graph(module, Tuning(client, tune, budget))
    _graphs[next(_numbers)] = graph
    return graph


def refresh(model: torch.nn.Module | None = None) -> int:
    """Look up the graphs of a compiled model, or all graphs, again; their next calls use better programs.

    Args:
        model: the model; None: all graphs of this process.

    Returns:
        The number of programs that were built again, one for each graph and shape of its inputs.
    """
    weights = None if model is None else {id(weight) for weight in (*model.parameters(), *model.buffers())}
    return sum(graph.refresh() for graph in list(_graphs.values()) if weights is None or graph.uses(weights))


def outcomes() -> list[Outcome]:
    """Return what became of each graph, for each shape of its inputs, in the order in which they were met."""
    return [outcome for graph in list(_graphs.values()) for outcome in graph.outcomes()]


@functools.cache
def _own_client() -> Client:
    return Client()
