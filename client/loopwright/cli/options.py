"""Options and arguments that commands share, and the client they stand for."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import typer

from loopwright import schemas
from loopwright.client import Client
from loopwright.units import microseconds

ExactMath = Annotated[
    bool,
    typer.Option(
        "--exact-math",
        help="Keep the C library's exp, tanh, erf and log, and the sums of convolutions, instead of fast ones.",
    ),
]
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
ScopeOption = Annotated[schemas.Scope, typer.Option(help="read, submit or admin.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", show_default=False)]
Limit = Annotated[int, typer.Option(min=1, help="Rows to show at most.")]
Until = Annotated[
    schemas.Until | None,
    typer.Option(help="Stop when the next minute is expected to gain less than 1 %."),
]
MaxDeviceSeconds = Annotated[
    float | None, typer.Option(min=0, help="Seconds to use measuring slots at most, without the closing races.")
]
TargetLatency = Annotated[
    str | None,
    typer.Option(
        metavar="LATENCY",
        help="Stop when one run of the model takes no longer: 120us, 1.5ms, or a number of microseconds.",
    ),
]
Shape = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="NAME=EXTENT", help="Value of a symbolic extent, as n=128; repeat for others."),
]


def in_microseconds(text: str | None) -> float | None:
    """The option's value in microseconds."""
    try:
        return None if text is None else microseconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--target-latency") from error


def shape(words: list[str] | None) -> dict[str, int] | None:
    """One value of each extent."""
    found = shapes(words)
    if isinstance(found, list):
        raise typer.BadParameter("takes one value of each extent here", param_hint="--shape")
    return found


def shapes(words: list[str] | None) -> dict[str, int] | list[dict[str, int]] | None:
    """Values of extents; where there are several of one, each of them with each of the others."""
    extents: dict[str, list[int]] = {}
    for word in words or ():
        name, _, values = word.partition("=")
        if not name or not all(value.isdecimal() for value in values.split(",")):
            raise typer.BadParameter(f"{word!r} is not of the form n=128", param_hint="--shape")
        extents[name] = [int(value) for value in values.split(",")]
    found = [dict(zip(extents, values, strict=True)) for values in itertools.product(*extents.values())]
    return found if len(found) > 1 else found[0] or None


def connect(context: typer.Context) -> Client:
    """The client for ``--url`` and ``--token`` of the command line."""
    root: Any = context.find_root().obj
    url, token = root
    return Client(url, token)
