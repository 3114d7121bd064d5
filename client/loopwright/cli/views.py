"""How jobs, bests, records, workers, users and tokens look in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console

from loopwright import schemas
from loopwright.cli.output import print_facts, print_line, print_table
from loopwright.codegen import worker_labels
from loopwright.jobs.job import Job, JobEvent
from loopwright.jobs.job_group import JobGroup
from loopwright.jobs.targets import short_names
from loopwright.results.comparison import Comparison
from loopwright.results.tables import (
    ALIKE,
    ENGINES,
    RECORDS,
    TARGETS,
    TASKS,
    Column,
    by_share,
    called,
    changed,
    figures,
    in_one_line,
    model_speedup,
    of_model,
)
from loopwright.results.tuning_logs import LoggedTask
from loopwright.results.units import interval_words, latency, plural, ratio
from loopwright.shapes.plan import Portfolio

_LIMITS = {
    "active_jobs": "active jobs",
    "daily_trials": "trials a day",
    "daily_device_seconds": "device seconds a day",
    "daily_bytes": "bytes a day",
}

_TF32 = "tf32: factors of float32 are rounded to 10 bits of mantissa"


def show_jobs(jobs: Sequence[Job]) -> None:
    """Print a table of jobs. In terminals that know links, each id is one to the job's page."""
    columns = (
        Column("job"),
        Column("name", folds=True),
        Column("state"),
        Column("trials", is_number=True),
        Column("speedup", is_number=True),
    )
    rows = [
        (
            job.id,
            # The jobs of a group have one name.
            job.name if job.group is None else f"{job.name} for {' '.join(short_names([job.target]))}",
            job.state,
            f"{job.progress.trials}/{job.progress.total}",
            model_speedup(job),
            f"{job.created_at:%Y-%m-%d %H:%M}",
        )
        for job in (each.info for each in jobs)
    ]
    print_table((*columns, Column("created (UTC)")), rows, links=[job.url for job in jobs])


def in_form(form: str, job: Job) -> str:
    """Return a job's fields in a text with their names in braces. Raises ValueError: there is no such field."""
    fields = {**job.info.model_dump(mode="json"), "url": job.url}
    try:
        return form.format_map(fields)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"--format {form!r} does not fit a job: {type(error).__name__} {error}; fields are {', '.join(fields)}"
        ) from error


def show_group(group: JobGroup) -> None:
    """Print a line for each target, and the command that lists the jobs again."""
    links = [job.url for job in group.jobs]
    print_table(TARGETS.columns, [TARGETS.row(row) for row in group.rows()], links=links)
    print_line(f"loopwright job list --group {group.id} lists these jobs")


def show_job(followed: Job, all_tasks: bool = False) -> None:
    """Print a job and its tasks by their share of the model's time, with those of trivial share in one line."""
    job = followed.info
    done = f"{job.progress.trials} of {job.progress.total} trials"
    print_line(f"{job.id}  {job.name}  {job.state}  {done}", link=followed.url)
    for line in _about(job):
        print_line(line)
    shown, folded = by_share(job.tasks)
    if all_tasks:
        shown, folded = [*shown, *folded], []
        print_facts([(name, latency(us)) for name, us in (figures(job.model) if job.model else ())])
    print_table(TASKS.columns, [TASKS.row(task) for task in shown])
    if folded:
        print_line(f"{in_one_line(folded)}; loopwright job show {job.id} --all lists them")
    for task in job.tasks:
        for line in _remarks(task):
            print_line(f"{called(task)}: {line}")


def _about(job: schemas.Job) -> Iterator[str]:
    """Yield what is said of a job before its tasks."""
    if job.activity:
        yield job.activity
    if job.tags:
        yield f"tags: {', '.join(job.tags)}"
    if job.description:
        yield job.description
    if job.group is not None:
        yield f"for {json.dumps(job.target, sort_keys=True)}; loopwright job list --group {job.group} lists all"
    for note in job.notes:
        yield f"note: {note}"
    if job.error:
        yield f"error: {job.error}"
    if job.model:
        yield of_model(job.model)


def _remarks(task: schemas.Task) -> Iterator[str]:
    """Yield which of a task's trials failed, and that a vendor's library is faster."""
    if task.failures:
        failures = ", ".join(f"{count} {kind}" for kind, count in task.failures.items())
        yield f"{sum(task.failures.values())} of {task.trials} trials failed ({failures})"
    if task.library is not None and task.best_us is not None and task.best_us > ALIKE * task.library.us:
        yield library_words(task.library, task.best_us)


def show_comparison(comparison: Comparison) -> None:
    print_table(ENGINES.columns, [ENGINES.row(engine) for engine in comparison.engines])
    print_line(comparison.caption)


def show_plan(plan: Portfolio) -> None:
    """Print the buckets of a symbolic extent on standard error: other commands read standard output."""
    Console(stderr=True).print(plan)


def show_event(event: JobEvent, task_names: dict[str, str]) -> None:
    """One line. ``task_names`` are by workload hash."""
    data = event.data
    task = task_names.get(data.get("workload_hash", ""), "task")
    if event.type == "job":
        line = _joined(data["state"], data.get("error"))
    elif event.type == "task":
        best = f"{latency(data['best_us'])}, {_speedup(data)}" if data.get("best_us") is not None else None
        line = f"{task}: {_joined(data['state'], best, 'certified' if data.get('certified') else None)}"
    elif event.type == "recheck":
        name = task_names.get(data["workload_hash"], data["name"])
        line = _joined(f"{name}: {data['result']['verdict']}", data["result"]["message"])
    else:
        line = f"{task} #{data['number']}: {_outcome(data)} ({data['origin']})"
    print_line(f"{event.id:>6}  {event.type:<7}  {line}")


def _speedup(task: dict[str, Any]) -> str:
    interval = task.get("interval")
    return ratio(task.get("speedup"), None if interval is None else schemas.Range.model_validate(interval))


def _outcome(trial: dict[str, Any]) -> str:
    if trial["state"] == "failed":
        return _joined("failed", trial.get("failure_kind"), trial.get("failure_message"))
    return _joined(trial["state"], None if trial.get("median_us") is None else latency(trial["median_us"]))


def _joined(*words: str | None) -> str:
    return ", ".join(word for word in words if word)


def show_best(best: schemas.Best) -> None:
    kind = "the unscheduled program is the best" if best.is_baseline else "schedule found"
    facts = [
        ("workload", f"{best.workload_hash} ({best.name})"),
        *([] if best.source is None else [("source", best.source)]),
        ("target", json.dumps(best.target, sort_keys=True)),
        ("device class", best.device_class),
        ("record", best.record_id),
        ("baseline", latency(best.baseline_us)),
        ("best", f"{latency(best.best_us)}, {ratio(best.speedup, best.certificate.interval)} ({kind})"),
        *([("math", _TF32)] if best.math == "tf32" else []),
        ("certified", certificate_words(best.certificate)),
        *_library(best.certificate),
        *_rejected(best.certificate),
    ]
    print_facts(facts)


def certificate_words(certificate: schemas.Certificate) -> str:
    error = f"largest error {certificate.max_abs_error:.3g} absolute, {certificate.max_rel_error:.3g} relative"
    race = f"race of {certificate.rounds} rounds (sandbox: {certificate.sandbox})"
    if certificate.interval is not None and certificate.grade is not None:
        race = f"{certificate.grade}, 95 % interval {interval_words(certificate.interval)}; {race}"
    if certificate.runner_up is not None:
        second, lost = certificate.runner_up.candidate, certificate.runner_up.slowdown
        race += f"; {second[:8]} came second, at {ratio(lost.value, lost)} the time ({interval_words(lost)})"
    if certificate.device_state is not None:
        race += f"; GPU after it: {_state_words(certificate.device_state)}"
    return f"{certificate.created_at:%Y-%m-%d %H:%M} UTC; {race}; {error}; inputs: {certificate.inputs}"


def library_words(library: schemas.Library, best_us: float) -> str:
    """Return what a vendor's library took for the same, and which of the two is faster."""
    took = f"{library.name} took {latency(library.us)} for the same operation"
    gain, loss = library.us / best_us, best_us / library.us
    if max(gain, loss) < ALIKE:
        return f"{took}, as long as this schedule"
    if gain > 1:
        return f"{took}; this schedule is {ratio(gain)} faster"
    return f"{took}; the library is {ratio(loss)} faster, so call it instead if you can"


def _library(certificate: schemas.Certificate) -> list[tuple[str, str]]:
    library = certificate.library
    return [] if library is None else [("library", library_words(library, certificate.best_us))]


def _state_words(state: schemas.DeviceState) -> str:
    """Return what the driver told of a GPU: ``1980 MHz, memory 2619 MHz, 61 °C, 412 W, throttled: power cap``."""
    words = [
        *([] if state.sm_mhz is None else [f"{state.sm_mhz} MHz"]),
        *([] if state.memory_mhz is None else [f"memory {state.memory_mhz} MHz"]),
        *([] if state.celsius is None else [f"{state.celsius} °C"]),
        *([] if state.watts is None else [f"{state.watts} W"]),
    ]
    if state.throttled is not None:
        reasons = " and ".join(reason.replace("_", " ") for reason in state.throttled)
        words.append(f"throttled: {reasons}" if reasons else "not throttled")
    return ", ".join(words)


def _rejected(certificate: schemas.Certificate) -> list[tuple[str, str]]:
    """Return one fact for each contender that the certificate rejects."""
    return [
        ("rejected", f"{contender.record_id or contender.candidate}: {contender.kind} ({contender.message})")
        for contender in certificate.rejected
    ]


def show_records(records: Sequence[schemas.Record]) -> None:
    print_table(RECORDS.columns, [RECORDS.row(record) for record in records])


def show_logged_tasks(tasks: Sequence[LoggedTask]) -> None:
    columns = (Column("tuner"), Column("task", folds=True), Column("target", folds=True))
    numbers = (Column("best", is_number=True), Column("trials", is_number=True), Column("failed", is_number=True))
    rows = [
        (task.tuner, task.name, task.target, latency(task.best_us), f"{task.trials:,}", f"{task.failed:,}")
        for task in tasks
    ]
    print_table((*columns, *numbers), rows)


def show_record(record: schemas.RecordDetail) -> None:
    """Print a record, and last its scheduled program, which is the only part that other commands can use."""
    samples = f"{len(record.run_secs)} sample" + ("" if len(record.run_secs) == 1 else "s")
    facts = [
        ("record", record.id),
        ("workload", f"{record.workload_hash} ({record.name})"),
        *([] if record.source is None else [("source", record.source)]),
        ("target", json.dumps(record.target, sort_keys=True)),
        ("device class", _machine(record)),
        ("median", f"{latency(record.median_us)} of {samples}"),
        *([] if record.rule is None else [("rule", _rule_words(record.rule))]),
        *([("weight", "packed once, outside the times")] if record.packs_weight else []),
        *([("math", _TF32)] if record.math == "tf32" else []),
        ("found by", record.origin + (f", job {record.job_id}" if record.job_id else "")),
        *([] if record.sandbox is None else [("sandbox", record.sandbox)]),
        *([] if record.device_state is None else [("GPU", _state_words(record.device_state))]),
        ("certified", "no" if record.certificate is None else certificate_words(record.certificate)),
        *([] if record.imported_certificate is None else [("imported with", _imported(record.imported_certificate))]),
        *([] if record.certificate is None else _library(record.certificate)),
        *([] if record.certificate is None else _rejected(record.certificate)),
    ]
    print_facts(facts)
    print_line(f"\n{record.script_after}")


def _machine(record: schemas.RecordDetail) -> str:
    """Return the device class, with the name of its machines if the service tells one."""
    name = record.device.get("name")
    return record.device_class if name is None else f"{name} ({record.device_class})"


def show_lineage(lineage: schemas.Lineage) -> None:
    """Print a line for each ancestor, from the parent on, and one for the best."""
    for ancestor in lineage.ancestors:
        parent = f"{ancestor.record_id} ({ancestor.origin}, {latency(ancestor.median_us)})"
        print_line(f"from {parent} by {_changes(ancestor.changes)}")
    if not lineage.ancestors:
        print_line("it descends from no measured trial")
    if lineage.best_id is not None:
        differs = f", which differs by {_changes(lineage.against_best)}" if lineage.against_best else ""
        print_line(f"the best is {lineage.best_id} ({latency(lineage.best_us)}){differs}")


def _changes(changes: Sequence[schemas.DecisionChange]) -> str:
    return "; ".join(map(changed, changes)) or "no decision that has a name"


def _imported(certificate: schemas.ImportedCertificate) -> str:
    return f"a certificate that {certificate.signed_by} has signed (key {certificate.signed.key_id})"


def _rule_words(rule: schemas.AppliedRule) -> str:
    """Return a rule with its knobs: ``gemv (version 1): block 256, at_once 4``."""
    return f"{rule.name} (version {rule.version}): {', '.join(f'{name} {value}' for name, value in rule.knobs.items())}"


_WORKER_COLUMNS = (
    Column("host"),
    Column("device"),
    Column("threads", is_number=True),
    Column("builders", is_number=True),
    Column("state"),
    Column("sandbox"),
    Column("labels", folds=True),
    Column("target", folds=True),
)


def show_workers(workers: Sequence[schemas.Worker]) -> None:
    rows = [
        (
            worker.host,
            worker.device,
            str(worker.threads),
            str(worker.builders),
            _state(worker),
            worker.sandbox,
            worker_labels.text(worker.labels) or "-",
            json.dumps(worker.target, sort_keys=True),
        )
        for worker in workers
    ]
    print_table(_WORKER_COLUMNS, rows)


def _state(worker: schemas.Worker) -> str:
    state = "alive" if worker.alive else f"gone since {_minute(worker.last_seen_at)} UTC"
    if worker.quarantine is not None:
        state += ", quarantined"
    if worker.drain is None:
        return state
    if worker.drain.state == "drained":
        return f"{state}, drained"
    slot = worker.slot
    measuring = [] if slot is None else ["a closing race" if slot.trial_id is None else f"trial {slot.trial_id}"]
    building = [plural(worker.builders_busy, "build")] if worker.builders_busy else []
    return f"{state}, draining: {' and '.join([*measuring, *building])}"


def show_tokens(tokens: Sequence[schemas.Token]) -> None:
    columns = (Column("id"), Column("user"), Column("kind"), Column("name", folds=True), Column("scope"))
    rows = [
        (token.id, token.user, token.kind, token.name, token.scope, _minute(token.used_at), _end_of(token))
        for token in tokens
    ]
    print_table((*columns, Column("used (UTC)"), Column("until")), rows)


def _end_of(token: schemas.Token) -> str:
    if token.revoked_at is not None:
        return f"revoked {_minute(token.revoked_at)}"
    return _minute(token.expires_at, "no expiry")


def _minute(time: datetime | None, otherwise: str = "never") -> str:
    return otherwise if time is None else f"{time:%Y-%m-%d %H:%M}"


def show_keys(keys: Sequence[schemas.SigningKey]) -> None:
    columns = (
        Column("id"),
        Column("public key", folds=True),
        Column("signs since (UTC)"),
        Column("until (UTC)"),
        Column("revoked (UTC)"),
    )
    rows = [(key.id, key.public_key, *("" if at is None else _minute(at) for at in _times(key))) for key in keys]
    print_table(columns, rows)


def _times(key: schemas.SigningKey) -> tuple[datetime | None, ...]:
    return key.created_at, key.retired_at, key.revoked_at


def show_webhooks(webhooks: Sequence[schemas.Webhook]) -> None:
    columns = (Column("id"), Column("url", folds=True), Column("events", folds=True), Column("user"))
    rows = [
        (webhook.id, webhook.url, ", ".join(webhook.events), webhook.user, _minute(webhook.created_at))
        for webhook in webhooks
    ]
    print_table((*columns, Column("made (UTC)")), rows)


def show_deliveries(deliveries: Sequence[schemas.Delivery]) -> None:
    columns = (Column("id"), Column("type"), Column("made (UTC)"), Column("attempts", is_number=True))
    rows = [
        (
            delivery.id,
            delivery.type,
            _minute(delivery.created_at),
            str(delivery.attempts),
            _standing(delivery),
            delivery.last_error or "",
        )
        for delivery in deliveries
    ]
    print_table((*columns, Column("state"), Column("last error", folds=True)), rows)


def _standing(delivery: schemas.Delivery) -> str:
    if delivery.delivered_at is not None:
        return f"delivered {_minute(delivery.delivered_at)}"
    return f"next {_minute(delivery.next_at)}" if delivery.next_at is not None else "given up"


def show_users(users: Sequence[schemas.User]) -> None:
    columns = (Column("user"), Column("role"), *(Column(title, is_number=True) for title in _LIMITS.values()))
    rows = [
        (
            user.name,
            user.role if user.disabled_at is None else "disabled",
            *(_limit(getattr(user.quota, name)) for name in _LIMITS),
        )
        for user in users
    ]
    print_table(columns, rows)


def show_use(use: schemas.Use) -> None:
    """Print how much of each limit is in use, and the use of the days before."""
    today = use.today
    used = (use.active_jobs, today.trials + use.pending_trials, today.device_seconds, today.bytes)
    print_line(f"{use.user}: {use.active_jobs} active jobs, which may make {use.pending_trials} more trials")
    rows = [
        (title, f"{amount:,.0f}", _limit(getattr(use.quota, name)))
        for (name, title), amount in zip(_LIMITS.items(), used, strict=True)
    ]
    print_table((Column("limit"), Column("in use", is_number=True), Column("allowed", is_number=True)), rows)
    columns = [Column(title, is_number=True) for title in ("jobs", "trials", "device seconds", "bytes")]
    days = [
        (day.day, f"{day.jobs:,}", f"{day.trials:,}", f"{day.device_seconds:,.0f}", f"{day.bytes:,}")
        for day in use.days
    ]
    print_table((Column("day (UTC)"), *columns), days)


def _limit(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def show_audit(entries: Sequence[schemas.AuditEntry]) -> None:
    columns = (Column("at (UTC)"), Column("user"), Column("action"), Column("object", folds=True))
    rows = [
        (f"{entry.at:%Y-%m-%d %H:%M:%S}", entry.user, entry.action, entry.object, str(entry.status), entry.address)
        for entry in entries
    ]
    print_table((*columns, Column("status", is_number=True), Column("from")), rows)
