"""Find the device class of a target: of ``auto``, or of a target that a live worker runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from db.views import OfferView
from loopwright.codegen import worker_labels
from service.context import LIVE_SECONDS, Context
from service.problems import ProblemError
from tuner.types import DeviceClass


def live_offers(ctx: Context, labels: Mapping[str, str] | None = None) -> list[OfferView]:
    """Return the device classes of live workers with these labels: GPUs, then CPUs, then boards, each time the most
    frequent first. ``auto`` takes the first.
    """
    offers = ctx.database.workers.offers(LIVE_SECONDS, labels)
    return sorted(
        offers,
        key=lambda offer: (
            kind(offer.device_class) != "cuda",
            offer.device_class.is_board,
            -offer.workers,
            offer.device_class.id,
        ),
    )


def kind(device_class: DeviceClass) -> str:
    return str(json.loads(device_class.target_json)["kind"])


def resolve(ctx: Context, target: str | dict[str, Any], labels: Mapping[str, str] | None = None) -> DeviceClass:
    """Return the device class that measures for ``target`` on workers with these labels.

    Raise ProblemError for an unknown target, a target that no live worker runs, labels that no live worker has, or if
    no worker is live.
    """
    [device_class] = resolve_all(ctx, [target], labels)
    return device_class


def resolve_all(
    ctx: Context, targets: Sequence[str | dict[str, Any]], labels: Mapping[str, str] | None = None
) -> list[DeviceClass]:
    """Return the device class that measures for each target on workers with these labels.

    Raise ProblemError as `resolve` does, for all targets that no live worker runs at once; and if two are the same.
    Raise `db.errors.DiskFull` if that is why no worker is live.
    """
    offers = live_offers(ctx, labels)
    if not offers and labels and (present := ctx.database.workers.labels(LIVE_SECONDS)):
        listed = "; ".join(f"{worker}: {worker_labels.text(own) or 'none'}" for worker, own in present.items())
        raise ProblemError(
            422,
            "labels-not-offered",
            f"No live worker has all of the labels {worker_labels.text(labels)}. Labels of live workers: {listed}",
        )
    if not offers:
        # Workers are live if their heartbeats could be stored.
        ctx.database.require_room()
        raise ProblemError(
            503,
            "no-worker",
            "No worker has joined yet. Wait until GET /readyz answers 200, or start a worker, and try again.",
            headers={"Retry-After": "5"},
        )
    found = [_resolved(ctx, target, offers) for target in targets]
    if refused := [each for each in found if isinstance(each, str)]:
        listed = "; ".join(offer.device_class.target_json for offer in offers)
        with_labels = f" with {worker_labels.text(labels)}" if labels else ""
        raise ProblemError(
            422,
            "target-not-offered",
            f"No live worker{with_labels} can run code for {' nor for '.join(refused)}. Use 'auto', add a machine that "
            f"can with scripts/worker, or use one of: {listed}",
        )
    machines = [each for each in found if not isinstance(each, str)]
    for position, machine in enumerate(machines):
        if machine in machines[:position]:
            earlier = machines.index(machine) + 1
            raise ProblemError(
                422,
                "same-target",
                f"Targets {earlier} and {position + 1} of this submission are the same, {machine.target_json}. "
                "Leave one of them out.",
            )
    return machines


def _resolved(ctx: Context, target: str | dict[str, Any], offers: Sequence[OfferView]) -> DeviceClass | str:
    """Return the device class, or the target as the request has it if none of the offers runs code for it."""
    if isinstance(target, str) and target.strip() == "auto":
        return offers[0].device_class
    target_text = json.dumps(target) if isinstance(target, dict) else target
    match = ctx.sandbox.match(target_text, [offer.device_class.target_json for offer in offers])
    if match.offer is None:
        return json.dumps(target, sort_keys=True) if isinstance(target, dict) else repr(target)
    return replace(offers[match.offer].device_class, target_json=match.target_json)
