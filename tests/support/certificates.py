"""Certificates that claim what was not measured, and are signed all the same."""

from __future__ import annotations

import json

import sqlalchemy

from loopwright.codegen import signatures
from tests.support.service_client import ServiceClient

_FOUND = "SELECT c.id, c.document, k.private_key FROM certificates c JOIN signing_keys k ON k.id = c.key_id"
_CHANGED = "UPDATE certificates SET best_median = best_median * :factor, best_run_secs = :secs, document = :document"


def claim(service: ServiceClient, workload_hash: str, factor: float) -> None:
    """Let the certificates of a workload say that its best takes ``factor`` times as long."""
    engine = sqlalchemy.create_engine(f"sqlite:///{service.data_dir / 'loopwright.db'}")
    with engine.begin() as connection:
        found = connection.execute(
            sqlalchemy.text(f"{_FOUND} WHERE c.workload_hash = :hash"), {"hash": workload_hash}
        ).all()
        for identity, document, private_key in found:
            signed = json.loads(document)
            signed["best_run_secs"] = [seconds * factor for seconds in signed["best_run_secs"]]
            text = signatures.canonical(signed)
            connection.execute(
                sqlalchemy.text(f"{_CHANGED}, signature = :signature WHERE id = :id"),
                {
                    "factor": factor,
                    "secs": json.dumps(signed["best_run_secs"]),
                    "document": text,
                    "signature": signatures.sign(private_key, text),
                    "id": identity,
                },
            )
    engine.dispose()
