"""Maps rechecks of the database to the wire."""

from __future__ import annotations

from db.views import RecheckView
from loopwright import schemas
from loopwright.codegen.source_text import shortened
from service.records.wire import signed
from service.units import micros


def recheck(view: RecheckView) -> schemas.Recheck:
    return schemas.Recheck(
        workload_hash=view.workload_hash,
        name=view.name,
        source=shortened(view.sources) or None,
        certificate_id=view.certificate_id,
        record_id=view.trial_id,
        reason=view.reason,
        certified_best_us=micros(view.best_median),
        certified_baseline_us=micros(view.baseline_median),
        result=None if view.result is None else schemas.RecheckResult.model_validate(view.result),
        signed=None if view.signed is None else signed(view.signed),
    )
