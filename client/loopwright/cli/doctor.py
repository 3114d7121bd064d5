"""``loopwright doctor``: whether this installation works, and what to do if it does not."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright import doctor as checks
from loopwright.cli.options import Json, connect
from loopwright.cli.output import print_json, print_line, print_table
from loopwright.doctor import Finding, Health
from loopwright.results.tables import Column

_COLUMNS = (Column("state"), Column("what"), Column("found", folds=True))


def doctor(
    context: typer.Context,
    offline: Annotated[
        bool, typer.Option("--offline", help="Check this installation only, without contacting a service.")
    ] = False,
    serve: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION",
            help="An option of scripts/serve to check with, as --serve=--port=8081; repeat for others.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check this installation and its service; exit status 1 if something does not work.

    In a checkout of Loopwright it also checks what the service needs: sandbox, devices, database, Ray, port.
    """
    findings = [*checks.of_this_python(), *checks.of_the_checkout(serve or [])]
    if not offline:
        with connect(context) as client:
            findings += checks.of_the_service(client)
    if as_json:
        print_json(findings)
    else:
        _show(findings)
    if any(finding.health is Health.PROBLEM for finding in findings):
        raise typer.Exit(1)


def _show(findings: list[Finding]) -> None:
    print_table(_COLUMNS, [[finding.health.value, finding.subject, finding.found] for finding in findings])
    advised = [finding for finding in findings if finding.advice is not None]
    if advised:
        print_line("\nWhat to do")
    for finding in advised:
        print_line(f"- {finding.subject}: {finding.advice}")
