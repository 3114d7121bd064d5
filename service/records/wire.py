"""Maps records, bests and certificates of the database to the wire."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict
from typing import Any

from db.results.signing_keys import SigningKeyView
from db.views import (
    BestView,
    CertificateView,
    ImportedCertificateView,
    JobView,
    RecordDetail,
    RecordView,
    SignedDocument,
    SpeedupInterval,
)
from loopwright import schemas
from loopwright.codegen.machine.names import machine_name
from loopwright.codegen.math_mode import applied_math
from loopwright.codegen.rule import applied_rule
from loopwright.codegen.source_text import shortened
from loopwright.codegen.weights.packed_weight import packs_weight
from service.records.reproduce import reproduce
from service.units import micros
from tuner.inspection.answers import Assembly, LoopModel, Scripts
from tuner.types import DeviceClass, DeviceState, LibraryTime, RunnerUp


def library(time: LibraryTime | None) -> schemas.Library | None:
    if time is None:
        return None
    return schemas.Library(name=time.name, us=micros(statistics.median(time.run_secs)), run_secs=list(time.run_secs))


def interval(of: SpeedupInterval | None) -> schemas.Range | None:
    return None if of is None else schemas.Range(value=of.value, low=of.low, high=of.high)


def runner_up(of: RunnerUp | None) -> schemas.RunnerUp | None:
    if of is None:
        return None
    slowdown = schemas.Range(value=of.slowdown, low=of.low, high=of.high if math.isfinite(of.high) else None)
    return schemas.RunnerUp(candidate=of.candidate_hash, slowdown=slowdown)


def device_state(state: DeviceState | None) -> schemas.DeviceState | None:
    if state is None:
        return None
    throttled = None if state.throttled is None else list(state.throttled)
    return schemas.DeviceState(
        sm_mhz=state.sm_mhz,
        memory_mhz=state.memory_mhz,
        celsius=state.celsius,
        watts=state.watts,
        throttled=throttled,
    )


def certificate(view: CertificateView) -> schemas.Certificate:
    evidence = view.value
    assert evidence.sandbox is not None  # of what is stored
    return schemas.Certificate(
        id=view.id,
        created_at=view.created_at,
        inputs=evidence.inputs,
        rtol=evidence.rtol,
        atol=evidence.atol,
        max_abs_error=evidence.max_abs_error,
        max_rel_error=evidence.max_rel_error,
        rounds=len(evidence.best_run_secs),
        baseline_run_secs=list(evidence.baseline_run_secs),
        best_run_secs=list(evidence.best_run_secs),
        baseline_us=micros(view.baseline_median),
        best_us=micros(view.best_median),
        speedup=view.speedup,
        interval=interval(view.interval),
        grade=view.interval.grade,
        contenders=evidence.contenders,
        runner_up=runner_up(view.runner_up),
        rejected=[
            schemas.RejectedContender(
                candidate=candidate_hash,
                record_id=view.rejected_trials.get(candidate_hash),
                stage=failure.stage,
                kind=failure.kind,
                message=failure.message,
            )
            for candidate_hash, failure in evidence.rejected.items()
        ],
        library=library(evidence.library),
        sandbox=evidence.sandbox,
        device_state=device_state(evidence.device_state),
        conditions=view.conditions,
        checked_at=view.checked_at,
        regressed_at=view.regressed_at,
        signed=signed(view.signed),
        verdict=None if view.verdict is None else signed(view.verdict),
    )


def signed(document: SignedDocument) -> schemas.SignedDocument:
    return schemas.SignedDocument(**asdict(document))


def imported_certificate(view: ImportedCertificateView) -> schemas.ImportedCertificate:
    return schemas.ImportedCertificate(
        signed=signed(view.signed),
        public_key=view.public_key,
        signed_by=view.signed_by,
        imported_at=view.created_at,
    )


def signing_key(view: SigningKeyView) -> schemas.SigningKey:
    return schemas.SigningKey(**asdict(view))


def best(view: BestView) -> schemas.Best:
    trace = None if view.trace_json is None else json.loads(view.trace_json)
    return schemas.Best(
        workload_hash=view.certificate.workload_hash,
        name=view.name,
        source=shortened(view.sources) or None,
        target=json.loads(view.target_json),
        device_class=view.certificate.device_class_id,
        record_id=view.certificate.trial_id,
        baseline_us=micros(view.certificate.baseline_median),
        best_us=micros(view.certificate.best_median),
        speedup=view.certificate.speedup,
        is_baseline=view.is_baseline,
        trace=trace,
        rule=rule(trace),
        packs_weight=packs_weight(trace),
        math=applied_math(trace),
        codegen_version=view.codegen_version,
        certificate=certificate(view.certificate),
        created_at=view.certificate.created_at,
    )


def record(view: RecordView) -> schemas.Record:
    return schemas.Record(
        id=view.id,
        workload_hash=view.workload_hash,
        name=view.name,
        source=shortened(view.sources) or None,
        candidate=view.candidate_hash,
        target=json.loads(view.target_json),
        device_class=view.device_class_id,
        median_us=micros(view.median),
        certified=view.certified,
        is_baseline=view.trace_json is None,
        job_id=view.job_id,
        sandbox=view.sandbox,
        created_at=view.created_at,
    )


def detail(found: RecordDetail, scripts: Scripts, job: JobView | None) -> schemas.RecordDetail:
    """``job`` is the one that measured the record, None for an imported record."""
    view = found.record
    trace = None if view.trace_json is None else json.loads(view.trace_json)
    return schemas.RecordDetail(
        **dict(record(view)),
        trace=trace,
        rule=rule(trace),
        packs_weight=packs_weight(trace),
        math=applied_math(trace),
        run_secs=list(view.run_secs),
        device=device(found.device_class),
        origin=view.origin,
        predicted=view.predicted,
        parent=view.parent,
        worker=view.worker,
        device_state=device_state(view.device_state),
        seed=view.seed,
        tvm_version=view.tvm_version,
        codegen_version=view.codegen_version,
        certificate=None if found.certificate is None else certificate(found.certificate),
        imported_certificate=None if found.imported is None else imported_certificate(found.imported),
        script_before=scripts.before,
        script_after=scripts.after,
        trace_python=scripts.trace,
        job_name=None if job is None else job.name,
        reproduce=None if job is None else reproduce(view, job),
    )


def assembly(made: Assembly) -> schemas.Assembly:
    return schemas.Assembly(
        language=made.language,
        text=made.text,
        lines=[schemas.CodeLine(**asdict(line)) for line in made.lines],
        program=made.program,
        sources=made.sources,
        loops=[
            schemas.CodeLoop(first=loop.first, last=loop.last, depth=loop.depth, model=_loop_model(loop.model))
            for loop in made.loops
        ],
        hot_loop=made.hot_loop,
    )


def _loop_model(model: LoopModel | None) -> schemas.LoopModel | None:
    if model is None:
        return None
    work = asdict(model.work)
    width, _ = work.pop("vector_bytes"), work.pop("slot_bytes")
    return schemas.LoopModel(
        **work, vector_bits=8 * width, cycles=model.cycles, bound=model.bound, peak_share=model.peak_share
    )


def rule(trace: list[Any] | None) -> schemas.AppliedRule | None:
    applied = applied_rule(trace)
    return None if applied is None else schemas.AppliedRule(**asdict(applied))


def device(device_class: DeviceClass) -> dict[str, Any]:
    return {
        "name": machine_name(device_class.model, device_class.target_json),
        "target": json.loads(device_class.target_json),
        "model": device_class.model,
        "features": list(device_class.features),
        "cores": device_class.cores,
        "threads": device_class.threads,
        "runtime": device_class.runtime,
    }
