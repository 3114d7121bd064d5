"""How many connections a process may have, unless it is told; settings read it, and import no SQLAlchemy."""

from __future__ import annotations

CONNECTIONS = 30
"""An API process has 40 threads that answer and 8 for event streams; each has a connection for milliseconds only. Of
PostgreSQL's 100, three processes fit."""
