"""Pins the functions of lowered models to their bests. Needs TVM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from loopwright import schemas
from loopwright.applying.lookup import LookedUp, digests
from loopwright.codegen.target import canonical_target
from loopwright.errors import NotLocked
from loopwright.locking.lock import Lock, LockedFunction


def pin(models: Sequence[LookedUp], keys: Iterable[schemas.SigningKey], *, allow_unscheduled: bool = False) -> Lock:
    """Return the lock of some lowered models with the same target.

    Args:
        models: what a service knows of them.
        keys: its public keys, of which the lock has those that signed its bests.
        allow_unscheduled: whether functions without a best are pinned to their unscheduled programs.

    Raises:
        NotLocked: a function has no best, and ``allow_unscheduled`` is false.
    """
    pinned: dict[str, LockedFunction] = {}
    missing: list[str] = []
    for model in models:
        for name, hashes in digests(model.module).items():
            best = model.bests.get(name)
            if best is None:
                missing.append(name)
            found = hashes[0] if best is None else best.workload_hash
            shipped = None if best is None else schemas.Best(**dict(best))
            pinned.setdefault(found, LockedFunction(workload_hash=found, name=name, best=shipped))
    if missing and not allow_unscheduled:
        raise NotLocked(
            f"no certified best is known for {', '.join(missing)}; tune the model ('loopwright job submit'), or pin "
            "these functions to their unscheduled programs with --allow-unscheduled"
        )
    functions = tuple(sorted(pinned.values(), key=lambda each: (each.name, each.workload_hash)))
    return Lock(json.loads(canonical_target(models[0].target)), functions, _used(functions, keys))


def check(lock: Lock, models: Iterable[LookedUp]) -> None:
    """Raise NotLocked if a function of lowered models is not in the lock."""
    functions = [function for model in models for function in digests(model.module).items()]
    missing = dict.fromkeys(name for name, hashes in functions if not any(each in lock.by_hash for each in hashes))
    if missing:
        raise NotLocked(
            f"the lock has no best of {', '.join(missing)}: the model has changed since, or is another one, or is "
            "lowered in another way; write the lock again with 'loopwright lock'"
        )


def _used(functions: Iterable[LockedFunction], keys: Iterable[schemas.SigningKey]) -> tuple[schemas.SigningKey, ...]:
    certificates = [each.best.certificate for each in functions if each.best is not None]
    used = {signed.key_id for each in certificates for signed in (each.signed, each.verdict) if signed is not None}
    return tuple(sorted((key for key in keys if key.id in used), key=lambda key: key.id))
