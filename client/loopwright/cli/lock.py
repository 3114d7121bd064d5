"""``loopwright lock``: pin the bests of a project's models in a file of its repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.options import ExactMath, Json, ManyExtents, Math, Target, connect, to_model, to_write
from loopwright.cli.output import print_json, print_line
from loopwright.errors import WrongCertificate
from loopwright.locking.lock import NAME, Lock
from loopwright.results.units import plural


def lock(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Files: TVMScript (.py), TVM JSON (.json), a saved torch.export program (.pt2) or ONNX (.onnx).",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The lock file.", callback=to_write)] = Path(NAME),
    target: Target = "auto",
    extents: ManyExtents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    allow_unscheduled: Annotated[
        bool,
        typer.Option("--allow-unscheduled", help="Pin functions without a best to their unscheduled programs."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; exit status 1 if the file is not what would be written."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Pin the present best of each function of models in a file, with which they compile without a service.

    A file that is current stays as it is. Exit status 1 if a function has no best.
    """
    sources = [to_model(each, extents, exact_math, math) for each in models]
    with connect(context) as client:
        present = client.lock(*sources, target=target, allow_unscheduled=allow_unscheduled)
    changes = _changes(output, present)
    if changes and not check:
        present.write(output)
    if as_json:
        print_json({"lock": str(output), "functions": len(present.functions), "changes": changes})
    else:
        for change in changes:
            print_line(change)
        state = ("not current" if check else "written") if changes else "current"
        print_line(f"{output}: {plural(len(present.functions), 'function')}, {state}")
    if changes and check:
        raise typer.Exit(1)


def _changes(path: Path, present: Lock) -> list[str]:
    """Return in words how a lock differs from its file, which may be none or one that cannot be used any more."""
    if not path.exists():
        return [f"{path}: no such file"]
    try:
        return Lock.read(path).changes(present)
    except (ValueError, WrongCertificate) as error:
        return [str(error)]
