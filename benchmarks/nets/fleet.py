"""A net's figures as the fleet measures them, taken again in turns with the engines' processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.nets import worker
from benchmarks.nets.what import What
from benchmarks.nets.worker import Function
from db import Database
from loopwright.codegen.host.threads import OMP_NUM_THREADS, environment
from loopwright.comparing.protocol import Sample
from workers.child.child_calls import BUILD, MEASURE
from workers.child.warm_child import ChildError, Session, WarmChild
from workers.messages import HOST, BuildRequest, ModelProgram
from workers.ray.actors import BUILD_SECONDS, MODEL_SECONDS
from workers.walls.levels import Policy, choose


@dataclass(frozen=True)
class FleetClock:
    """Takes samples like a `loopwright.comparing.processes.EngineProcess`, of what its name says."""

    name: What
    session: Session

    def sample(self) -> Sample:
        """Return the seconds of a call. Raises RuntimeError: the net cannot be measured, or the process ended."""
        try:
            return Sample(self.session.ask(self.name, MODEL_SECONDS), 0.0)
        except ChildError as error:
            raise RuntimeError(error.for_users) from error


@contextlib.contextmanager
def clocks(database_url: str, job_id: str, threads: int) -> Iterator[list[FleetClock]]:
    """Yield the clocks of a job's net, in a child as a worker's; none if a function has no certificate.

    Raises RuntimeError: the net cannot be measured as one program.
    """
    model, functions = _programs(Database(database_url), job_id)
    if not functions:
        yield []
        return
    child = WarmChild(
        [MEASURE.module, worker.__name__],
        {**environment(threads), OMP_NUM_THREADS: str(threads)},
        level=choose(Policy.PREFER),
    )
    try:
        with child.session(f"{worker.__name__}:{worker.seconds.__name__}", (HOST, model, functions)) as session:
            found = [FleetClock(what, session) for what in What]
            for clock in found:
                clock.sample()  # builds the model now: under the host's lock, in the rounds, it would wait for ever
            yield found
    finally:
        child.close()


def _programs(database: Database, job_id: str) -> tuple[ModelProgram, Sequence[Function]]:
    """Return what the service timed as one program, and its functions as they were certified."""
    inputs, target = database.jobs.inputs(job_id), database.jobs.get(job_id).target_json
    traces: dict[str, str | None] = {}
    functions: list[Function] = []
    builder = WarmChild([BUILD.module], {"TVM_NUM_THREADS": "1"}, level=choose(Policy.PREFER), programs=True)
    try:
        for task in database.tasks.of_job(job_id):
            if task.record_id is None:
                return ModelProgram(inputs.module_json, target, traces), []
            trace = traces[task.workload_hash] = database.records.get(task.record_id).record.trace_json
            workload = database.workloads.get(task.workload_hash)
            request = BuildRequest(workload.module_json, trace, target)
            built = BUILD.raw(builder, (request,), BUILD_SECONDS)
            functions.append(Function(workload.summary.args, built, task.weight))
    finally:
        builder.close()
    return ModelProgram(inputs.module_json, target, traces), functions
