"""What the nodes of a model are called."""

from __future__ import annotations

import ast

import onnx

_SCOPES = "pkg.torch.onnx.name_scopes"
"""In the metadata of a node that PyTorch wrote: a list in Python's syntax of the modules around it and its own name."""


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model, each of whose nodes has a name now: its own, or the module that PyTorch noted for it.

    A node with neither has the name of its first output.
    """
    _name(model.graph)
    return model


def _name(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        node.name = _module(node) or node.name or next(filter(None, node.output), "")
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _name(attribute.g)


def _module(node: onnx.NodeProto) -> str:
    text = next((each.value for each in node.metadata_props if each.key == _SCOPES), "")
    try:
        scopes = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return ""
    return str(scopes[-2]) if isinstance(scopes, list) and len(scopes) > 1 else ""
