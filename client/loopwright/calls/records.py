"""Calls about what was measured: bests and records, what explains them, and TVM's files of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loopwright import schemas
from loopwright.calls.connection import API, PAGE_SIZE, Connection
from loopwright.jobs.job import Job
from loopwright.jobs.targets import as_text
from loopwright.results.tables import BESTS, RECORDS, Listing
from loopwright.session.transport import parse

if TYPE_CHECKING:
    from loopwright.results.best import Best


class RecordCalls(Connection):
    """Bests, and the measured trials that they were chosen from."""

    def bests(self, target: Any = "auto") -> Listing[Best]:
        """Return every certified best for a target, the newest first.

        Args:
            target: the target to list bests for.

        Returns:
            A list that is read page by page, and shown as a table in terminals and notebooks.
        """
        from loopwright.results.best import Best

        query = {"target": as_text(target), "page_size": PAGE_SIZE}
        return Listing(self._transport.pages(Best, f"{API}/bests", **query), BESTS)

    def records(
        self, workload_hash: str | None = None, target: Any = None, sort: str = "latency", *, search: str | None = None
    ) -> Listing[schemas.Record]:
        """Return measured trials.

        Args:
            workload_hash: only trials of this workload.
            target: only trials for this target.
            sort: ``"latency"`` for the fastest first, or ``"newest"``.
            search: only trials of functions with this in their name or in the place where a model calls them, or whose
                hash begins with it.

        Returns:
            A list that is read page by page, and shown as a table in terminals and notebooks.
        """
        query = {"workload_hash": workload_hash, "q": search, "sort": sort, "page_size": PAGE_SIZE}
        if target is not None:
            query["target"] = as_text(target)
        return Listing(self._transport.pages(schemas.Record, f"{API}/records", **query), RECORDS)

    def record(self, record_id: str) -> schemas.RecordDetail:
        """Return a measured trial in full: trace, raw samples, device, certificate, the program before and after.

        Args:
            record_id: ``Record.id``.

        Raises:
            NotFound: there is no such record.
        """
        return self._transport.get(schemas.RecordDetail, f"{API}/records/{quote(record_id, safe='')}")

    def ablate(self, record_id: str) -> Job:
        """Race a record's schedule with its neighbours, each of which differs in one decision.

        Args:
            record_id: the record, whose device class has a live worker.

        Returns:
            The queued job; `ablation` returns its result.

        Raises:
            InvalidRequest: the record is the unscheduled program, or no worker has its device class.
        """
        answer = self._transport.request("POST", f"{API}/records/{quote(record_id, safe='')}/ablation")
        return Job(self._transport, parse(schemas.Job, answer))

    def ablation(self, record_id: str) -> schemas.Ablation | None:
        """Return the newest ablation of a record, with its result once the races are over; None if there was none.

        Args:
            record_id: the record.
        """
        answer = self._transport.request("GET", f"{API}/records/{quote(record_id, safe='')}/ablation")
        return None if answer.json() is None else parse(schemas.Ablation, answer)

    def lineage(self, record_id: str) -> schemas.Lineage:
        """Return the measured ancestors of a record, what each mutation changed, and how the best differs from it.

        Args:
            record_id: the record.
        """
        return self._transport.get(schemas.Lineage, f"{API}/records/{quote(record_id, safe='')}/lineage")

    def signing_keys(self) -> Iterator[schemas.SigningKey]:
        """Yield the public keys with which the service signs certificates, the newest first, and all earlier ones."""
        return self._bests.keys()

    def export_records(self, directory: str | Path) -> Path:
        """Write TVM's JSON pair of the certified bests into a directory.

        Args:
            directory: the directory to write. It is made if it does not exist.

        Returns:
            The directory.
        """
        from loopwright.results import archive

        with tempfile.TemporaryFile() as tar:
            self._transport.download(f"{API}/records/export", tar)
            return archive.unpack(tar, Path(directory))

    def import_records(self, directory: str | Path) -> schemas.ImportReport:
        """Send the JSON pair of a TVM tuning database, such as `export_records` writes. Known records are skipped.

        A large pair is sent in parts. If a part is refused, the parts before it stay stored.

        Args:
            directory: the directory that contains ``database_workload.json`` and ``database_tuning_record.json``.

        Returns:
            The number of records that were stored, and the reasons why others were not.

        Raises:
            FileNotFoundError: one of the two files is missing.
            ValueError: it is a file, or has logs of AutoTVM or auto_scheduler; the message says why these are refused.
        """
        from loopwright.results.archive import MEMBERS
        from loopwright.results.importing import import_pair
        from loopwright.results.tuning_logs import NOT_IMPORTED, logged_tasks

        path = Path(directory)
        if logged_tasks(path):
            raise ValueError(f"{path} has logs of earlier tuners. {NOT_IMPORTED}")
        if path.is_file():
            raise ValueError(f"{path} is a file; give the directory that contains {' and '.join(MEMBERS)}")
        return import_pair(self._transport, f"{API}/records/import", path)
