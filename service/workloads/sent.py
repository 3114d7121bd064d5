"""Bests as they are sent: what is said of each is written once, and again when it has changed."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from db.results.lookup import BestKey
from service.context import Context
from service.records import wire


def best_texts(
    ctx: Context, workload_hashes: Iterable[str], target_json: str, device_class_id: str | None
) -> dict[str, str]:
    """Return the JSON of the best of each workload that has one, by its hash; see `db.results.lookup.Lookup.bests`."""
    lookup = ctx.database.lookup
    keys = lookup.keys(workload_hashes, target_json, device_class_id=device_class_id)
    unknown = [workload_hash for workload_hash, key in keys.items() if key not in ctx.bests]
    read = lookup.bests(unknown, target_json, device_class_id=device_class_id) if unknown else {}
    # They may have changed since their keys were read.
    keys |= {workload_hash: BestKey.of(known.best) for workload_hash, known in read.items()}

    def written(workload_hash: str) -> str:
        known = read.get(workload_hash)
        if known is None:  # it was forgotten meanwhile
            known = lookup.bests([workload_hash], target_json, device_class_id=device_class_id)[workload_hash]
        return wire.best(known.best).model_dump_json(by_alias=True)

    return {each: ctx.bests.get(key, functools.partial(written, each)) for each, key in keys.items()}
