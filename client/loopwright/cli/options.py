"""Options and arguments that commands share, and the client they stand for."""

from __future__ import annotations

import errno
import itertools
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from loopwright import schemas
from loopwright.cli import scripts
from loopwright.client import Client
from loopwright.codegen import worker_labels
from loopwright.codegen.errors import InvalidLabel
from loopwright.codegen.math_mode import FP32, MathMode
from loopwright.errors import NotFound
from loopwright.jobs.job import Job
from loopwright.model import Model, Shapes
from loopwright.results.units import microseconds
from loopwright.shapes.plan import Calls

ExactMath = Annotated[
    bool,
    typer.Option(
        "--exact-math",
        help="Use exp, tanh, erf and log of the C library, and exact sums of convolutions, instead of faster versions.",
    ),
]
Math = Annotated[
    MathMode,
    typer.Option(help="tf32: on GPUs with TF32, float32 products and convolutions may round their operands to TF32."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Target = Annotated[
    str, typer.Option(help='"auto" (what the service selects), a TVM target string or tag, or its JSON.')
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help='"auto" (the default: what the service selects), a TVM target string, tag or JSON; repeat for a job each.',
    ),
]
ModelFile = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file: TVMScript (.py), TVM JSON (.json), a saved torch.export program (.pt2) or ONNX (.onnx); or "
        "script.py:NAME, a model in a Python script, or its function that returns one.",
        show_default=False,
    ),
]
Web = Annotated[bool, typer.Option("--web", help="Open the job's page in the browser.")]
ScopeOption = Annotated[schemas.Scope, typer.Option(help="The widest right of the token: read, submit or admin.")]
JobId = Annotated[
    str, typer.Argument(metavar="JOB", help="Id of the job, or its name: the newest of this name.", show_default=False)
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A word for the job, as nightly; repeat for more.")
]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of rows.")]
Until = Annotated[
    schemas.Until | None,
    typer.Option(help="Stop when the next minute is expected to gain less than 1 %."),
]
MaxDeviceSeconds = Annotated[
    float | None, typer.Option(min=0, help="Maximum seconds of measuring slots, without the closing races.")
]
TargetLatency = Annotated[
    str | None,
    typer.Option(
        metavar="LATENCY",
        help="Stop when one run of the model takes no longer: 120us, 1.5ms, or a number of microseconds.",
    ),
]
Extents = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", metavar="NAME=EXTENT", help="Value of a symbolic extent, as n=128; repeat for other extents."
    ),
]
ManyExtents = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=EXTENT[,…]",
        help="Value of a symbolic extent, as n=128; several values, as n=1,64; a range, as n=1..256; or values with "
        "weights, as n=1:900,16:50. Repeat for other extents.",
    ),
]
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_FORMS = "of the form n=128, n=1,64, n=1..256 or n=1:900,16:50"


def in_microseconds(text: str | None) -> float | None:
    """Return the option's value in microseconds."""
    try:
        return None if text is None else microseconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--target-latency") from error


def labels(words: list[str] | None) -> dict[str, str]:
    """Return the labels of workers in the option's values."""
    try:
        return worker_labels.parse(words or ())
    except InvalidLabel as error:
        raise typer.BadParameter(str(error), param_hint="--label") from error


def to_model(file: str, extents: list[str] | None, exact_math: bool, math: MathMode) -> Model:
    """Return the model that the arguments of a command describe."""
    shapes = _shapes(extents)
    path, _, name = file.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        if not Path(file).exists():  # said before anything is imported that reads it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)
        return Model(Path(file), shapes=shapes, exact_math=exact_math, math=math)
    found = scripts.model_named(Path(path), name)
    # What the command line leaves out, the script decides.
    return replace(
        found,
        shapes=found.shapes if shapes is None else shapes,
        exact_math=exact_math or found.exact_math,
        math=found.math if math == FP32 else math,
    )


def to_write(file: Path | None) -> Path | None:
    """Return an option's file. What keeps it from being written is said before a command works for minutes."""
    if file is not None:
        present = file if file.exists() else file.parent
        if file.is_dir():
            raise typer.BadParameter(f"{file} is a directory; name a file in it")
        if not present.exists():
            raise typer.BadParameter(f"there is no directory {present}; make it first, or name a file elsewhere")
        if not os.access(present, os.W_OK):
            raise typer.BadParameter(f"you may not write {present}; name a file elsewhere")
    return file


def in_the_past(text: str) -> datetime:
    """Return the time that the option ``--since`` names."""
    ago = re.fullmatch(r"(\d+)([mhd])", text.strip())
    try:
        if ago is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        named = datetime.fromisoformat(text)
    except (OverflowError, ValueError) as error:
        raise typer.BadParameter(
            f"{text!r} is not of the form 90m, 12h, 7d, 2026-01-31 or 2026-01-31T08:00", param_hint="--since"
        ) from error
    return named if named.tzinfo is not None else named.replace(tzinfo=UTC)


def _shapes(words: list[str] | None) -> Shapes | None:
    """Return the values of extents. If several have more than one value, every combination of them is listed."""
    portfolio: dict[str, int | Calls] = {}
    extents: dict[str, list[int]] = {}
    for word in words or ():
        name, _, values = word.partition("=")
        try:
            if ".." in values or ":" in values:
                portfolio[name] = _calls(values)
            else:
                extents[name] = [_number(value) for value in values.split(",")]
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"{word!r} is not {_FORMS}", param_hint="--shape")
    found = [dict(zip(extents, values, strict=True)) for values in itertools.product(*extents.values())]
    if portfolio and len(found) > 1:
        raise typer.BadParameter(
            "beside a range or weights, give one value for each other extent", param_hint="--shape"
        )
    if portfolio:
        return {**found[0], **portfolio}
    return found if len(found) > 1 else found[0] or None


def _calls(values: str) -> Calls:
    """Raises ValueError if it is neither a range nor weights."""
    if ".." in values:
        first, last = map(_number, values.split(".."))
        return range(first, last + 1)
    pairs = (value.split(":") for value in values.split(","))
    return {_number(extent): _number(weight) for extent, weight in pairs}


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def default_name(model: str) -> str | None:
    """Return the name of a job for a model: the stem of its file, unless that says nothing, or its name in a script."""
    stem = Path(model).stem
    return stem if stem != "main" else model.partition(".py:")[2] or None


def connect(context: typer.Context) -> Client:
    """Return the client for ``--url`` and ``--token`` of the command line."""
    root: Any = context.find_root().obj
    url, token = root
    return Client(url, token)


def named_job(client: Client, text: str) -> Job:
    """Return the job of an id, or the newest of a name. Raises NotFound."""
    try:
        return client.job(text)
    except NotFound:
        found = next(client.jobs(name=text), None)
        if found is None:
            raise
        return found
