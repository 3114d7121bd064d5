"""How many connections a process may have, unless it is told; settings read it, and import no SQLAlchemy."""

from __future__ import annotations

CONNECTIONS = 7
"""With the one on which a process listens for news, twelve processes use 96 of the 97 connections that PostgreSQL has
for them by default: ten controllers and two API processes. An API process has 40 threads that answer and 8 for event
streams, and a controller one for each of its jobs; each has a connection for milliseconds only, and waits for a free
one of its process for up to half a minute."""
