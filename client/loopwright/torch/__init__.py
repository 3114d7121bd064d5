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
from loopwright.locking.lock import Lock
from loopwright.torch.graph import Graph
from loopwright.torch.variant import Outcome, Tune, Tuning

__all__ = ["Outcome", "backend", "lock", "outcomes", "refresh"]

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
    - ``lock``: a file that `lock` wrote, or a `Lock`: graphs are compiled with exactly its bests, and no service is
      asked. A graph with a function that it does not have raises `NotLocked` in its first call. It takes the place of
      ``tune`` and a budget.

    Args:
        module: the graph.
        example_inputs: the inputs of its first call.
        options: see above; None: the defaults.

    Raises:
        ValueError: an option is unknown, or cannot be what was given; or the lock cannot be read.
        WrongCertificate: a best in the lock is not what its service signed.
    """
    rest = dict(options or {})
    tune = rest.pop("tune", "background")
    if tune not in _TUNE:
        raise ValueError(f"tune is {tune!r}; it may be {', '.join(map(repr, _TUNE))}")
    client = rest.pop("client", None) or _own_client()
    pinned = rest.pop("lock", None)
    budget: dict[str, Any] = {name: rest.pop(name) for name in _BUDGET if name in rest}
    if rest:
        known = ", ".join(("tune", *_BUDGET, "client", "lock"))
        raise ValueError(f"unknown options: {', '.join(sorted(rest))}; known are {known}")
    if pinned is not None and (budget or "tune" in (options or {})):
        raise ValueError("a lock pins what graphs are compiled with, and nothing is tuned; leave out lock, or the rest")
    graph = Graph(module, Tuning(client, tune, budget, None if pinned is None else Lock.of(pinned)))
    _graphs[next(_numbers)] = graph
    return graph


def refresh(model: torch.nn.Module | None = None) -> int:
    """Look up the graphs of a compiled model, or all graphs, again; their next calls use better programs.

    Args:
        model: the model; None: all graphs of this process.

    Returns:
        The number of programs that were built again, one for each graph and shape of its inputs.
    """
    return sum(graph.refresh() for graph in _graphs_of(model))


def lock(
    model: torch.nn.Module | None = None, *, client: Client | None = None, allow_unscheduled: bool = False
) -> Lock:
    """Return the present bests of all functions of the graphs that ran, for a lock file (the option ``lock``).

    Args:
        model: the compiled model; None: all graphs of this process.
        client: the client that looks up the bests; by default one without arguments.
        allow_unscheduled: whether functions without a best are pinned to their unscheduled programs.

    Raises:
        NotLocked: a function has no best, and ``allow_unscheduled`` is false.
        ValueError: no graph of the model ran.
    """
    programs = [program for graph in _graphs_of(model) for program in graph.programs()]
    if not programs:
        raise ValueError("no graph of the model ran that can be compiled; call the compiled model once before")
    return (client or _own_client()).lock(*programs, allow_unscheduled=allow_unscheduled)


def outcomes() -> list[Outcome]:
    """Return what became of each graph, for each shape of its inputs, in the order in which they were met."""
    return [outcome for graph in list(_graphs.values()) for outcome in graph.outcomes()]


def _graphs_of(model: torch.nn.Module | None) -> list[Graph]:
    """Return the graphs that have a weight of a model, or all graphs."""
    weights = None if model is None else {id(weight) for weight in (*model.parameters(), *model.buffers())}
    return [graph for graph in list(_graphs.values()) if weights is None or graph.uses(weights)]


@functools.cache
def _own_client() -> Client:
    return Client()
