"""What tests ask of a service over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from loopwright.codegen.kinds import FINISHED
from tests.support.waiting import wait_for

JOB_SECONDS = 240.0
"""Without progress of a job."""


def stage_of(job: Mapping[str, Any]) -> object:
    """Return what changes while a job makes progress; ``job`` may be empty."""
    tasks = [(task["state"], task["trials"], task["certified"]) for task in job.get("tasks", ())]
    return job.get("state"), job.get("activity"), job.get("progress"), tasks


class ServiceClient:
    """``http`` bears the owner's token and leads to ``url``."""

    url: str
    http: httpx.Client
    folder: Path
    """The user's: in ``state`` clients of this machine find the service."""
    data_dir: Path

    @property
    def token(self) -> str:
        """The owner's."""
        return (self.data_dir / "token").read_text().strip()

    def login_url(self) -> str:
        """An address that signs a browser in, once."""
        answer = self.http.post("/api/v1/login-codes")
        assert answer.status_code == 201, answer.text
        return f"{self.url}{answer.json()['path']}"

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of a path below /api/v1, which must be there."""
        answer = self.http.get(f"/api/v1{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post_job(
        self, module: str | dict[str, str], headers: dict[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        payload = {"format": "tvmscript", "data": module} if isinstance(module, str) else module
        trials = fields.pop("trials", 8)
        body = {"module": payload, "budget": {"max_trials": trials}, **fields}
        return self.http.post("/api/v1/jobs", json=body, headers=headers)

    def submit(self, module: str | dict[str, str], **fields: Any) -> str:
        """The id of a new job."""
        answer = self.post_job(module, **fields)
        assert answer.status_code == 202, answer.text
        assert answer.headers["Location"] == f"/api/v1/jobs/{answer.json()['id']}"
        return str(answer.json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/jobs/{job_id}")
        return found

    def finished(self, job_id: str) -> dict[str, Any]:
        """The job, once it has ended."""
        return self._await_job(job_id, "the end", lambda job: job["state"] in FINISHED)

    def _await_job(self, job_id: str, what: str, is_reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The job, once it has come so far. It may take as long as it makes progress."""
        job: dict[str, Any] = {}

        def look() -> dict[str, Any] | None:
            job.update(self.job(job_id))
            return job if is_reached(job) else None

        return wait_for(f"{what} of job {job_id}", look, JOB_SECONDS, progress=lambda: stage_of(job))

    def tuned(self, module: str | dict[str, str], **fields: Any) -> dict[str, Any]:
        """Submit a job and see it succeed, every task with a certified best."""
        job = self.finished(self.submit(module, **fields))
        assert job["state"] == "succeeded", job
        assert all(task["certified"] for task in job["tasks"]), job
        return job

    def in_the_middle(self, job_id: str, trials: int = 3) -> dict[str, Any]:
        """The job, once it has measured ``trials`` and while it is still running."""
        job = self._await_job(job_id, f"{trials} trials", lambda job: job["progress"]["trials"] >= trials)
        assert job["state"] == "running", f"the job was over too soon for this test: {job}"
        return job

    def pages(self, path: str, page_size: int = 500, **query: Any) -> list[list[dict[str, Any]]]:
        """Every page of a list."""
        pages, token = [], None
        while True:
            page = self.get(path, page_size=page_size, **query, **({"page_token": token} if token else {}))
            pages.append(page["items"])
            token = page["next_page_token"]
            if token is None:
                return pages

    def items(self, path: str, **query: Any) -> list[dict[str, Any]]:
        return [item for page in self.pages(path, **query) for item in page]

    def events(self, job_id: str, after: int | None = None, most: int | None = None) -> list[dict[str, Any]]:
        """The job's events to the end of the stream, or the first ``most`` of them."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        events: list[dict[str, Any]] = []
        with self.http.stream("GET", f"/api/v1/jobs/{job_id}/events", headers=headers, timeout=JOB_SECONDS) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            for event in _server_sent(answer.iter_lines()):
                events.append(event)
                if len(events) == most:
                    break
        return events


def _server_sent(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield {"id": int(fields["id"]), "type": fields["event"], "data": json.loads(fields["data"])}
            fields = {}
