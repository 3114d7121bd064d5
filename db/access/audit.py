"""The audit log: requested changes, by whom, and whether they were refused."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, select

from db.access.views import AuditView
from db.engine.changes import Topic
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import Keyset, Page
from db.models import AuditEntry

_NEWEST = Keyset("audit", AuditEntry.id, descending=True)


def _view(row: AuditEntry) -> AuditView:
    return AuditView(row.created_at, row.user_name, row.token_id, row.action, row.object, row.status, row.address)


class Audit:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def add(self, *, user_name: str, token_id: str, action: str, object: str, status: int, address: str) -> None:
        with self._sessions.write(Topic.NONE) as session:
            session.add(
                AuditEntry(
                    created_at=self._sessions.now(),
                    user_name=user_name,
                    token_id=token_id,
                    action=action,
                    object=object,
                    status=status,
                    address=address,
                )
            )

    def page(self, page_size: int = 50, page_token: str | None = None) -> Page[AuditView]:
        """Newest first. Raise `InvalidPage`."""
        with self._sessions.read() as session:
            return _NEWEST.page(session, select(AuditEntry), _view, page_size, page_token)

    @retry_conflicts
    def forget(self, days: float) -> int:
        """Delete entries that are older; return how many."""
        old = delete(AuditEntry).where(AuditEntry.created_at < self._sessions.now() - timedelta(days=days))
        with self._sessions.write() as session:
            return session.connection().execute(old).rowcount
