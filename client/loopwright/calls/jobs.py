"""Calls that submit jobs and find them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Unpack, overload
from urllib.parse import quote

from loopwright import frontends, schemas
from loopwright.calls.connection import API, PAGE_SIZE
from loopwright.calls.shapes import ShapeCalls
from loopwright.errors import NotFound
from loopwright.frontends import stochastic
from loopwright.jobs.check_result import CheckResult, gate_against
from loopwright.jobs.job import Job
from loopwright.jobs.job_group import JobGroup
from loopwright.jobs.submit_options import BudgetAndModelOptions, SubmitOptions
from loopwright.jobs.targets import on_wire
from loopwright.model import as_model
from loopwright.session.transport import body, parse
from loopwright.shapes.plan import is_portfolio


class JobCalls(ShapeCalls):
    """Jobs, which tune and race."""

    @overload
    def submit(
        self, model: Any, target: Any = "auto", *, targets: None = None, **options: Unpack[SubmitOptions]
    ) -> Job: ...

    @overload
    def submit(self, model: Any, *, targets: Sequence[Any], **options: Unpack[SubmitOptions]) -> JobGroup: ...

    def submit(
        self,
        model: Any,
        target: Any = "auto",
        *,
        targets: Sequence[Any] | None = None,
        space: stochastic.Space | None = None,
        seed: int = 0,
        name: str | None = None,
        priority: int = 0,
        force: bool = False,
        visibility: schemas.Visibility = "team",
        gate: schemas.Gate | None = None,
        labels: dict[str, str] | None = None,
        tags: Sequence[str] = (),
        description: str = "",
        idempotency_key: str | None = None,
        seconds_per_function: float | None = None,
        **options: Unpack[BudgetAndModelOptions],
    ) -> Job | JobGroup:
        """Submit a model for tuning; return at once with the queued job, or with a group of jobs for ``targets``.

        Args:
            model: a `Model`, or a plain model with the options of `Model` as keyword arguments.
            target: the target to tune for.
            targets: up to 8 targets, in place of ``target``. Each becomes a job, with the whole budget; all jobs are
                stored, or none.
            space: None (the built-in space), a function ``f(sch)`` that makes stochastic choices (run here; only its
                trace is sent), a trace, or a list of traces ``[instructions, decisions]``.
            seed: seed of the search.
            name: name of the job; by default the service derives it from the model.
            priority: -100 to 100; jobs with a higher priority run first. Only admins may give one above 0.
            force: search even if the database already has the answer.
            visibility: ``"private"`` hides the job from all but its owner and admins, and its workloads unless others
                submitted them, too.
            gate: the reference with which the tuned model is compared; `check` makes one.
            labels: ``{"rack": "a"}``: only workers that have all of these labels measure the job.
            tags: words by which `jobs` narrows the list, such as ``["nightly"]``.
            description: what the job is for; shown on its page.
            idempotency_key: a second submission with the same key returns the same job. By default a new key, so that
                a retry after a lost answer submits once.
            seconds_per_function: raises ``max_seconds`` to so many seconds for each function that no earlier search
                answers, so that a model of many functions has time for all of their closing races.
            options: the budget, and the options of a plain model. ``max_trials`` (64 by default), ``max_seconds``,
                ``max_device_seconds``, ``target_latency_us`` and ``until="plateau"`` are described by `schemas.Budget`.

        Raises:
            TypeError: the model or the space is of a kind that is not accepted; an option is missing, is not for this
                kind of model, or is given beside a `Model`; or ``targets`` is a string.
            UnsupportedModel: the model cannot be turned into a module; the message names the part.
            ValueError: a budget, priority or name is out of bounds, or both ``target`` and ``targets`` are given.
            InvalidRequest: the service cannot tune the model, no worker runs code for a target, or two targets are the
                same; the detail says what to change.
        """
        if isinstance(targets, str):
            raise TypeError(f"targets={targets!r} should be a list; give a single one as target")
        budget = {name: value for name, value in options.items() if name in schemas.Budget.model_fields}
        source = as_model(model, **{name: value for name, value in options.items() if name not in budget})
        shapes = self.plan_shapes(source).shapes if is_portfolio(source.shapes) else source.shapes
        if bound := frontends.bound(source):
            shapes = _without(shapes, bound)
        request = body(
            schemas.SubmitJob,
            module=frontends.to_payload(source),
            target=on_wire(target),
            targets=None if targets is None else [on_wire(each) for each in targets],
            name=name,
            seed=seed,
            priority=priority,
            budget=budget,
            seconds_per_function=seconds_per_function,
            space=stochastic.to_traces(space, source),
            shapes=shapes,
            force=force,
            exact_math=source.exact_math,
            math=source.math,
            visibility=visibility,
            gate=None if gate is None else gate.model_dump(mode="json"),
            labels=labels or {},
            tags=list(tags),
            description=description,
        )
        response = self._transport.request(
            "POST",
            f"{API}/jobs",
            json=request,
            headers={"Idempotency-Key": idempotency_key or uuid.uuid4().hex},
            repeatable=True,
        )
        if targets is not None:
            return JobGroup(self._transport, parse(schemas.JobGroup, response), targets)
        return Job(self._transport, parse(schemas.Job, response))

    def check(
        self,
        model: Any,
        against: Any,
        target: Any = "auto",
        *,
        max_slowdown: float = 0.03,
        progress: bool = True,
        **submission: Any,
    ) -> CheckResult:
        """Race a model with a reference, for continuous integration.

        The model is submitted: known functions are answered from the database, and new ones are tuned. Then the model
        is raced with the reference on the fleet, until it is clear whether one run of it takes longer by more than
        ``max_slowdown``.

        Args:
            model: as for `submit`.
            against: a `Job` or its id; the name of jobs, for the newest of them that succeeded; or the path of a file
                that `CheckResult.record` wrote.
            target: the target to tune and race for, which is that of the reference.
            max_slowdown: a share, 0.03 for three percent.
            progress: whether to draw progress bars on standard error.
            submission: further arguments of `submit`, such as ``max_trials``, ``shapes`` and ``example_inputs``; not
                ``targets``.

        Returns:
            The finished job and the result of the race; ``passed`` is true unless a regression was shown.

        Raises:
            CheckFailed: the job did not succeed; its message says why.
            InvalidRequest: there is no such reference, or it is of another device class.
        """
        job = self.submit(model, target, targets=None, gate=gate_against(against, max_slowdown), **submission)
        job.wait(progress=progress)
        return CheckResult.of(job)

    def job(self, job_id: str) -> Job:
        """Return a job by its id.

        Args:
            job_id: ``Job.id``.

        Raises:
            NotFound: there is no such job.
        """
        return Job(self._transport, self._transport.get(schemas.Job, f"{API}/jobs/{quote(job_id, safe='')}"))

    def jobs(
        self,
        owner: str | None = None,
        group: str | None = None,
        *,
        name: str | None = None,
        states: Sequence[schemas.JobState] = (),
        tag: str | None = None,
        search: str | None = None,
        since: datetime | None = None,
        sort: schemas.JobSort = "created",
    ) -> Iterator[Job]:
        """Yield jobs, the newest first unless sorted otherwise, or those of one group in the order of its targets.

        Args:
            owner: only jobs of this user.
            group: only jobs of this group.
            name: only jobs of this name.
            states: only jobs in one of these states.
            tag: only jobs with this tag.
            search: only jobs whose name contains this, whose model calls a function at a place with this in its name,
                or whose id begins with it.
            since: only jobs that were submitted then or later; a time with its zone.
            sort: ``"created"``, ``"name"``, or ``"gain"``: those first that save most of one run of their model.
        """
        wanted = {
            **{"owner": owner, "group": group, "name": name, "state": list(states) or None, "tag": tag, "q": search},
            **{"since": None if since is None else since.isoformat(), "sort": None if sort == "created" else sort},
        }
        for info in self._transport.pages(schemas.Job, f"{API}/jobs", **wanted, page_size=PAGE_SIZE):
            yield Job(self._transport, info)

    def job_group(self, group_id: str) -> JobGroup:
        """Return the jobs of a submission for several targets.

        Args:
            group_id: ``JobGroup.id``.

        Raises:
            NotFound: there is no such group.
        """
        jobs = [job.info for job in self.jobs(group=group_id)]
        if not jobs:
            raise NotFound(schemas.Problem(title="Not found", status=404, detail=f"There is no group {group_id!r}."))
        return JobGroup(self._transport, schemas.JobGroup(id=group_id, jobs=jobs))

    def recheck(self, workloads: Sequence[str], target: Any = "auto") -> Job:
        """Race the bests of some workloads again, with the unscheduled programs.

        The service does this by itself when a best is old, and when a kernel, a driver or TVM has changed.

        Args:
            workloads: hashes of the workloads.
            target: the target whose machines race.

        Returns:
            The queued job; `Job.rechecks` returns its results.

        Raises:
            InvalidRequest: none of the workloads has a best on such machines.
        """
        wanted = body(schemas.NewRecheck, workloads=list(workloads), target=on_wire(target))
        return Job(self._transport, parse(schemas.Job, self._transport.request("POST", f"{API}/rechecks", json=wanted)))


def _without(shapes: Any, names: frozenset[str]) -> Any:
    """Return shapes, of which there may be several, without the extents of some names; None if no other is left."""
    if isinstance(shapes, list):
        kept = [_without(shape, names) for shape in shapes]
        return kept if all(kept) else None
    return {name: extent for name, extent in shapes.items() if name not in names} or None
