"""The entry point of the database: one object with all repositories."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from copy import copy
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import text

from db.access.audit import Audit
from db.access.tokens import Tokens
from db.access.usage import Uses
from db.access.users import Users
from db.access.versions import Part, Version, Versions
from db.access.visibility import Viewer, limit_to
from db.access.webhooks import Webhooks
from db.cost_models import CostModels
from db.counts import Counts, Totals, count, totals, trials_since
from db.device_leases import DeviceLeases
from db.devices import Devices
from db.engine.columns import Clock
from db.engine.connections import Sessions, create_engine
from db.engine.pool_size import CONNECTIONS
from db.errors import DiskFull
from db.events import Events
from db.job_counts import JobCounts
from db.jobs.gates import Gates
from db.jobs.job_news import JobNews
from db.jobs.jobs import Jobs
from db.jobs.tasks import Tasks
from db.leases import lease_seconds
from db.results.ablations import Ablations
from db.results.best_schedules import BestSchedules
from db.results.certificates import Certificates
from db.results.comparisons import Comparisons
from db.results.imports import Imports
from db.results.insight import Insight
from db.results.lookup import Lookup
from db.results.rechecks import Rechecks
from db.results.records import Records
from db.results.signing_keys import SigningKeys
from db.retention import Retention
from db.tallies import Tallies
from db.trials import Trials
from db.upkeep.gauges import Gauges
from db.workers import Workers
from db.workloads import Workloads

_ROOM_BYTES = 2**20
"""Less room than that is none: a commit writes some pages of 4 KiB. Not tuned."""


class Database:
    """The tuning database at `url` (``sqlite:///file`` or ``postgresql://…``), whose tables `db.migrate` makes.

    Threads may share one; a process must not hand it to a child. `clock` tells the time, timezone-aware; None: the
    server's, or this machine's for a file. There are at most so many ``connections``. Any call raises
    `db.errors.Unavailable` while the database is away, and `db.errors.DatabaseDamaged`.
    """

    def __init__(self, url: str, clock: Clock | None = None, connections: int = CONNECTIONS) -> None:
        self._engine = create_engine(url, connections)
        self._versions = Versions(self._engine)
        self._open(Sessions(self._engine, clock))

    def seen_by(self, viewer: Viewer) -> Database:
        """Return the same database, with reads restricted to what the viewer may see (`db.access.visibility`)."""
        limited = copy(self)
        limited._open(self._sessions.limited(partial(limit_to, viewer)))
        return limited

    def _open(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.jobs = Jobs(self._sessions)
        self.comparisons = Comparisons(self._sessions)
        self.gates = Gates(self._sessions)
        self.job_counts = JobCounts(self._sessions)
        self.tasks = Tasks(self._sessions)
        self.trials = Trials(self._sessions)
        self.tallies = Tallies(self._sessions)
        self.rechecks = Rechecks(self._sessions)
        self.ablations = Ablations(self._sessions)
        self.records = Records(self._sessions)
        self.imports = Imports(self._sessions)
        self.certificates = Certificates(self._sessions)
        self.signing_keys = SigningKeys(self._sessions)
        self.best_schedules = BestSchedules(self._sessions)
        self.lookup = Lookup(self._sessions)
        self.insight = Insight(self._sessions)
        self.workloads = Workloads(self._sessions)
        self.cost_models = CostModels(self._sessions)
        self.devices = Devices(self._sessions)
        self.workers = Workers(self._sessions)
        self.device_leases = DeviceLeases(self._sessions)
        self.events = Events(self._sessions)
        self.users = Users(self._sessions)
        self.tokens = Tokens(self._sessions)
        self.uses = Uses(self._sessions)
        self.audit = Audit(self._sessions)
        self.webhooks = Webhooks(self._sessions)
        self.retention = Retention(self._sessions)
        self.gauges = Gauges(self._sessions)

    @property
    def lease_seconds(self) -> float:
        """The duration of a job's lease after its last renewal."""
        return lease_seconds(self._engine.dialect.name)

    @property
    def is_server(self) -> bool:
        """Return whether processes of several machines may use it: it is no file."""
        return self._engine.dialect.name != "sqlite"

    def now(self) -> datetime:
        """Return the time that the database uses for its timestamps."""
        return self._sessions.now()

    def version(self, part: Part | None = None) -> Version:
        """Return the version of everything that is stored, or of a part of it, for everybody."""
        return self._versions.read(part)

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of this thread within the block be of one snapshot (`db.engine.connections.Sessions`)."""
        return self._sessions.snapshot()

    def ping(self) -> None:
        """Raises `db.errors.Unavailable` if the database does not answer."""
        with self._sessions.read() as session:
            session.execute(text("SELECT 1"))

    def require_room(self) -> None:
        """Raises `db.errors.DiskFull` if the file of the database has no room to grow. A server reports that itself."""
        url = self._engine.url
        if url.get_backend_name() != "sqlite" or url.database is None:
            return
        if (free := shutil.disk_usage(Path(url.database).resolve().parent).free) < _ROOM_BYTES:
            raise DiskFull(f"the disk of the database is full: it has {free / 1e6:.1f} MB left")

    def job_news(self) -> JobNews:
        """Return an object that reports when jobs were queued."""
        return JobNews(self._engine)

    def counts(self) -> Counts:
        """Jobs and trials by state."""
        with self._sessions.read() as session:
            return count(session)

    def totals(self) -> Totals:
        """Return how much there is of everything."""
        with self._sessions.read() as session:
            return totals(session)

    def trials_within(self, seconds: float) -> int:
        """Return how many trials of the last so many seconds have ended, baselines aside: it looks at each of them."""
        with self._sessions.read() as session:
            return trials_since(session, self._sessions.now() - timedelta(seconds=seconds))

    def close(self) -> None:
        """Close all connections."""
        self._versions.close()
        self._engine.dispose()
