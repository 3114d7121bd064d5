"""Calls that exchange bests with other services as packs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loopwright import schemas
from loopwright.calls.connection import API, Connection
from loopwright.jobs.job import Job

if TYPE_CHECKING:
    from loopwright.packs.manifest import PackManifest


class PackCalls(Connection):
    """Packs: signed files of certified bests."""

    def export_pack(
        self,
        path: str | Path,
        *,
        key: str | Path,
        creator: str,
        licence: str,
        name: str | None = None,
        jobs: Sequence[Job] | None = None,
        device_class: str | None = None,
        text: str | None = None,
    ) -> PackManifest:
        """Write certified bests, with their certificates and functions, to a pack: one signed file for other services.

        Args:
            path: the file to write.
            key: the file of the private key that signs it, which ``loopwright key new`` made.
            creator: who makes it.
            licence: its licence, such as ``Apache-2.0``.
            name: its name; by default that of the file.
            jobs: only bests of functions of these jobs.
            device_class: only bests of this device class.
            text: only bests of functions whose names contain this text.

        Returns:
            The pack's manifest.

        Raises:
            ValueError: no best is chosen, there are too many for a pack, or ``key`` is no such file.
            WrongCertificate: a certificate is not what the service signed.
        """
        from loopwright.packs import choosing, signing

        workloads = None if jobs is None else {task.workload_hash for job in jobs for task in job.tasks}
        choice = choosing.Choice(workloads, device_class, text)
        signed_by = signing.read_key(Path(key))
        name = name or Path(path).stem
        return choosing.export(
            self._transport, API, Path(path), choice, name=name, creator=creator, licence=licence, key=signed_by
        )

    def install_pack(self, path: str | Path, keys: str | Path) -> schemas.ImportReport:
        """Verify a pack, and import its bests. Jobs of the same functions try them first, and known ones are skipped.

        Args:
            path: the pack.
            keys: a file of public keys, as ``loopwright key list --json`` and ``loopwright key show --json`` print
                them. One of them must have signed the pack.

        Returns:
            The number of records that were stored, and the reasons why others were not.

        Raises:
            InvalidPack: it is no pack, was changed or cut off, its key is unknown or revoked, or it is for another
                version of TVM.
            ValueError: ``keys`` is no file of keys.
        """
        from loopwright.packs.archive import read
        from loopwright.packs.installing import install
        from loopwright.results import evidence

        pack = read(Path(path), evidence.read_keys(Path(keys)))
        return install(self._transport, f"{API}/records/import", pack, self.version())
