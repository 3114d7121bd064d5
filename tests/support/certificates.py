"""Certificates that claim what was not measured."""

from __future__ import annotations

import sqlalchemy

from tests.support.service_client import ServiceClient


def claim(service: ServiceClient, workload_hash: str, factor: float) -> None:
    """Let the certificates of a workload say that its best takes ``factor`` times as long."""
    engine = sqlalchemy.create_engine(f"sqlite:///{service.data_dir / 'loopwright.db'}")
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("UPDATE certificates SET best_median = best_median * :factor WHERE workload_hash = :hash"),
            {"factor": factor, "hash": workload_hash},
        )
    engine.dispose()
