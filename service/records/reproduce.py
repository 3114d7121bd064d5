"""Lines that repeat the search of a record."""

from __future__ import annotations

import shlex

from db.views import JobView, RecordView
from loopwright import schemas


def reproduce(record: RecordView, job: JobView) -> schemas.Reproduce:
    """Return lines that repeat the record's job with its module, target, space, budget and seed, and with ``force``."""
    budget = job.budget
    words = [
        "loopwright",
        "job",
        "resubmit",
        job.id,
        "--max-trials",
        str(budget.max_trials),
        "--seed",
        str(job.seed),
    ]
    limits = f"max_trials={budget.max_trials}, seed={job.seed}"
    if budget.max_seconds is not None:
        words += ["--max-seconds", f"{budget.max_seconds:g}"]
        limits += f", max_seconds={budget.max_seconds:g}"
    return schemas.Reproduce(
        cli=[f"loopwright record show {record.id}", shlex.join([*words, "--force", "--wait"])],
        sdk=[
            "import loopwright",
            "",
            "client = loopwright.Client()",
            f'record = client.record("{record.id}")',
            f'job = client.job("{job.id}").resubmit({limits}, force=True)',
            "job.wait(progress=True)",
        ],
    )
