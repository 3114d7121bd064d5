"""``loopwright pack``: certified bests as one signed file, from one service to others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.options import Json, connect, named_job
from loopwright.cli.output import print_facts, print_json, print_line, print_table
from loopwright.codegen.machine.names import machine_name
from loopwright.packs.manifest import PackMachine, PackManifest
from loopwright.results.tables import Column
from loopwright.results.units import plural

app = typer.Typer(help="Ship certified bests as one signed file.", no_args_is_help=True)

PackFile = Annotated[Path, typer.Argument(metavar="PACK", help="File of the pack.", show_default=False)]
Keys = Annotated[
    Path,
    typer.Option(
        help="File of public keys, one of which must have signed the pack: what its creator's 'key show --json' prints."
    ),
]


@app.command()
def export(
    context: typer.Context,
    path: PackFile,
    key: Annotated[Path, typer.Option(help="File of the private key to sign it with, which 'key new' made.")],
    creator: Annotated[str, typer.Option(help="Who makes it.")],
    licence: Annotated[str, typer.Option(help="Its licence, as an SPDX expression: Apache-2.0.")],
    name: Annotated[str | None, typer.Option(help="Its name; by default that of the file.")] = None,
    job: Annotated[
        list[str] | None,
        typer.Option(metavar="JOB", help="Only functions of this job, given by id or name; repeat for more."),
    ] = None,
    device_class: Annotated[str | None, typer.Option(help="Only bests of this device class.")] = None,
    text: Annotated[str | None, typer.Option(help="Only functions whose names contain this text.")] = None,
    as_json: Json = False,
) -> None:
    """Write certified bests with their certificates to a file that another service can install."""
    with connect(context) as client:
        jobs = None if job is None else [named_job(client, each) for each in job]
        manifest = client.export_pack(
            path,
            key=key,
            creator=creator,
            licence=licence,
            name=name,
            jobs=jobs,
            device_class=device_class,
            text=text,
        )
    if as_json:
        print_json(manifest)
    else:
        print_line(f"{plural(manifest.bests, 'best')} of {plural(manifest.functions, 'function')} written to {path}")


@app.command()
def show(
    path: PackFile,
    keys: Annotated[Path | None, typer.Option(help="File of public keys, one of which must have signed it.")] = None,
    as_json: Json = False,
) -> None:
    """Show what a pack is, after a check of its digests and signatures. Without --keys, nobody knows whose it is."""
    # Imported here, because the other commands need none of it.
    from loopwright.packs.archive import read
    from loopwright.results import evidence

    pack = read(path, None if keys is None else evidence.read_keys(keys))
    if as_json:
        print_json({**pack.manifest.model_dump(mode="json"), "key_id": pack.signature.key_id, "known": pack.is_known})
        return
    known = "which is in your keys" if pack.is_known else "which nobody has vouched for: give --keys"
    print_facts([*_facts(pack.manifest), ("signed with", f"the key {pack.signature.key_id}, {known}")])
    _show_machines(pack.manifest.machines)


@app.command()
def install(context: typer.Context, path: PackFile, keys: Keys, as_json: Json = False) -> None:
    """Verify a pack, and import its bests: jobs of the same functions try them first."""
    with connect(context) as client:
        report = client.install_pack(path, keys)
    if as_json:
        print_json(report)
        return
    print_line(f"{report.imported} records imported, {report.duplicates} known before, {len(report.errors)} not taken")
    for error in report.errors:
        print_line(f"  {error}")


@app.command()
def push(
    path: PackFile,
    place: Annotated[
        str,
        typer.Argument(
            metavar="PLACE", help="oci://HOST/REPOSITORY:TAG, a URL that takes PUT, or a directory.", show_default=False
        ),
    ],
    as_json: Json = False,
) -> None:
    """Copy a pack to a directory, a web server or an OCI registry, and print what 'pull' finds it by."""
    # Imported here, because the other commands need no HTTP.
    from loopwright.packs import places

    pushed = places.push(path, place)
    if as_json:
        print_json({"place": pushed})
    else:
        print_line(pushed)


@app.command()
def pull(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PLACE",
            help="oci://HOST/REPOSITORY:TAG or …@sha256:DIGEST, a URL, or a file.",
            show_default=False,
        ),
    ],
    path: PackFile,
    keys: Annotated[Path | None, typer.Option(help="File of public keys, one of which must have signed it.")] = None,
    as_json: Json = False,
) -> None:
    """Copy a pack from a place to a file, after a check of its digests and signatures."""
    from loopwright.packs import places
    from loopwright.results import evidence

    pack = places.pull(place, path, None if keys is None else evidence.read_keys(keys))
    if as_json:
        print_json({**pack.manifest.model_dump(mode="json"), "key_id": pack.signature.key_id, "known": pack.is_known})
    else:
        print_line(f"{pack.manifest.name}: {plural(pack.manifest.bests, 'best')} written to {path}")


def _facts(manifest: PackManifest) -> list[tuple[str, str]]:
    return [
        ("pack", manifest.name),
        ("creator", manifest.creator),
        ("licence", manifest.licence),
        ("made (UTC)", f"{manifest.created_at:%Y-%m-%d %H:%M}"),
        ("bests", f"{manifest.bests} of {plural(manifest.functions, 'function')}"),
        ("versions", f"Loopwright {manifest.loopwright}, TVM {manifest.tvm}"),
    ]


def _show_machines(machines: Sequence[PackMachine]) -> None:
    columns = (
        Column("certified on", folds=True),
        Column("cores", is_number=True),
        Column("threads", is_number=True),
        Column("device class"),
        Column("target", folds=True),
    )
    rows = [
        (machine_name(each.model, "{}"), str(each.cores), str(each.threads), each.device_class, str(each.target))
        for each in machines
    ]
    print_table(columns, rows)
