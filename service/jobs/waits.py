"""Why a job does not get on: no worker can measure it, others are before it, or another program uses the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from db.views import Availability, JobView
from loopwright.codegen import worker_labels
from loopwright.codegen.kinds import JobState
from loopwright.codegen.machine.names import machine_name
from service.api.liveness import LIVE_SECONDS
from service.context import Context


@dataclass(frozen=True, slots=True)
class Waits:
    """The workers as they are now."""

    workers: Sequence[Availability]

    @staticmethod
    def read(ctx: Context) -> Waits:
        return Waits(ctx.database.workers.availability(LIVE_SECONDS))

    def activity(self, job: JobView) -> str | None:
        """Return what a job that has not ended does or waits for, in words."""
        able = [
            worker
            for worker in self.workers
            if worker.device_class_id == job.device_class_id and worker_labels.matches(worker.labels, job.labels)
        ]
        alive = [worker for worker in able if worker.alive]
        if not alive:
            model = f" ({machine_name(able[0].device_model, job.target_json)})" if able else ""
            labels = f" with {worker_labels.text(job.labels)}" if job.labels else ""
            waits = f"waiting for a worker of the device class {job.device_class_id}{model}{labels}: none is alive"
            return waits if job.activity is None else f"{job.activity}; {waits}"
        if all(worker.quarantined or worker.drained for worker in alive):
            return "waiting for a worker: all that can measure it are drained or in quarantine"
        if job.state is JobState.QUEUED:
            return "waiting for its turn in the queue"
        busy = [worker.waits_for for worker in alive if worker.waits_for is not None]
        if len(busy) == len(alive):
            return f"{job.activity or 'starting'}; waiting for the machine, which {busy[0]} uses"
        return job.activity
