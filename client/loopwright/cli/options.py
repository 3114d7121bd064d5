"""Options and arguments that commands share, and the client they stand for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from loopwright.client import Client

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Target = Annotated[str, typer.Option(help='"auto", a TVM target, tag, or JSON.')]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file: TVMScript (.py), TVM JSON (.json), a saved torch.export program (.pt2) or ONNX (.onnx).",
        show_default=False,
    ),
]
JobId = Annotated[str, typer.Argument(metavar="JOB", show_default=False)]
Limit = Annotated[int, typer.Option(min=1, help="Rows to show at most.")]


def connect(context: typer.Context) -> Client:
    """The client for ``--url`` and ``--token`` of the command line."""
    root: Any = context.find_root().obj
    url, token = root
    return Client(url, token)
