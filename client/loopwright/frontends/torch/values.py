"""Tensors within what models of PyTorch are called with and return: tuples, mappings, and objects such as caches."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = (str, bytes, int, float, complex, type(None))


def tensors(value: Any) -> dict[str, Any]:
    """Return the tensors within a value, in order, each by its path in words: ``past_key_values_layers_0_keys``.

    A tensor that is there twice is returned once, and found in tuples, lists, mappings and attributes only.
    """
    found: dict[str, Any] = {}
    for path, tensor in _walk(value, "", set()):
        while path in found:
            path += "_"
        found[path] = tensor
    return found


def replaced(value: Any, others: Mapping[int, Any]) -> Any:
    """Return a copy of a value with other tensors, given by the ``id`` of those in their place; the rest are shared."""
    memo = {id(tensor): others.get(id(tensor), tensor) for tensor in tensors(value).values()}
    return copy.deepcopy(value, memo)


def flattened(model: Any, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a module from tensors by name to a tuple of tensors, which calls the model, and its inputs."""
    torch = importlib.import_module("torch")
    found = tensors({**named, "args": inputs})

    class Flattened(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, **others: Any) -> tuple[Any, ...]:
            args, kwargs = replaced((inputs, named), {id(tensor): others[name] for name, tensor in found.items()})
            return tuple(tensors(self.model(*args, **kwargs)).values())

    return Flattened(), found


def is_tree(inputs: Any, outputs: Any) -> bool:
    """Return whether ``torch.export`` can take the inputs apart, and finds nothing but tensors in the outputs."""
    leaves = importlib.import_module("torch").utils._pytree.tree_leaves
    return all(map(_is_tensor, leaves(outputs))) and all(
        _is_tensor(leaf) or isinstance(leaf, _PLAIN) for leaf in leaves(inputs)
    )


def _walk(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (*_PLAIN, type)) or id(value) in seen:
        return
    seen.add(id(value))
    if _is_tensor(value):
        yield path or "value", value
        return
    if isinstance(value, Mapping):
        parts = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, tuple | list):
        parts = [(str(index), part) for index, part in enumerate(value)]
    else:
        parts = list(getattr(value, "__dict__", {}).items())
    for key, part in parts:
        yield from _walk(part, f"{path}_{key}".strip("_"), seen)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, importlib.import_module("torch").Tensor)
