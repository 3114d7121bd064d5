"""Maps ablations to the wire."""

from __future__ import annotations

from db.views import AblationView
from loopwright import schemas


def ablation(view: AblationView) -> schemas.Ablation:
    return schemas.Ablation(
        record_id=view.trial_id,
        job_id=view.job_id,
        state=view.state,
        error=view.error,
        result=None if view.result is None else schemas.AblationResult.model_validate(view.result),
    )
