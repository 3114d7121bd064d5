"""Functions that a parent calls in a child: generators of values, whose arguments are values, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

from tuner.codec import adapter, decode

Confine = Callable[[], None]
"""Puts up walls around the process that calls it, for good. A function with such an argument runs nothing that users
sent itself: it starts processes for that, which confine themselves."""
F = TypeVar("F", bound=Callable[..., Iterator[Any]])

_TYPES: dict[Callable[..., Any], dict[str, Any]] = {}
"""Of each entry's arguments."""


def entry(function: F) -> F:
    """Have a child read the function's arguments by their annotations. Without, they are JSON.

    The readers are made now, so that forks inherit them. An argument ``questions`` is an iterator of a session's
    questions, and ``confine`` puts up walls.
    """
    types = get_type_hints(function, include_extras=True)
    _TYPES[function] = {name: types[name] for name in inspect.signature(function).parameters if name != "confine"}
    for name, kind in _TYPES[function].items():
        adapter(_of_each(kind) if name == "questions" else kind)
    return function


def confines(function: Callable[..., Any]) -> bool:
    """Return whether the function itself puts up the walls."""
    return "confine" in inspect.signature(function).parameters


def decoded(
    function: Callable[..., Any], arguments: Mapping[str, Any] | Sequence[Any], questions: Iterator[Any] | None
) -> dict[str, Any]:
    """Return the function's arguments from JSON, by name or in the order of its parameters."""
    types = _TYPES.get(function, {})
    if not isinstance(arguments, Mapping):
        arguments = dict(zip(inspect.signature(function).parameters, arguments, strict=False))
    values = {name: decode(types[name], value) if name in types else value for name, value in arguments.items()}
    if questions is None:
        return values
    if "questions" not in types:
        return values | {"questions": questions}
    kind = _of_each(types["questions"])
    return values | {"questions": (decode(kind, question) for question in questions)}


def _of_each(iterator: Any) -> Any:
    return get_args(iterator)[0]
