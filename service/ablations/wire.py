"""Maps ablations to the wire."""

from __future__ import annotations

from dataclasses import asdict

from db.views import AblationView
from loopwright import schemas
from service.gates.race import on_wire_range
from service.units import micros
from tuner.races.ablation import Ablated


def ablation(view: AblationView) -> schemas.Ablation:
    return schemas.Ablation(
        record_id=view.trial_id,
        job_id=view.job_id,
        state=view.state,
        error=view.error,
        result=None if view.result is None else schemas.AblationResult.model_validate(view.result),
    )


def neighbour(ablated: Ablated) -> schemas.Neighbour:
    return schemas.Neighbour(
        changes=[schemas.DecisionChange(**asdict(change)) for change in ablated.changes],
        us=micros(ablated.seconds),
        slowdown=None if ablated.slowdown is None else on_wire_range(ablated.slowdown),
        message=ablated.message,
    )
