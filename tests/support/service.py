"""A real service in processes of its own, and what tests ask of it over HTTP."""

from __future__ import annotations

import contextlib
import json
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from tests.support.processes import Family, clean_environment, command_of
from tests.support.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0
JOB_SECONDS = 240.0
PLACES = 2
"""Jobs that the service which tests share works on at a time."""
FINISHED = ("succeeded", "failed", "cancelled")


def free_port() -> int:
    """A port that nobody listens on, above those of Ray's workers and below those that connections get."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Service:
    """``python -m service`` on a data directory, which outlives it. Everything of the user's lies in ``folder``."""

    def __init__(self, folder: Path, database_url: str | None = None) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.port = free_port()
        self.environment = {**clean_environment(), "HOME": str(self.home), "XDG_STATE_HOME": str(folder / "state")}
        if database_url is not None:
            self.environment["LOOPWRIGHT_DATABASE_URL"] = database_url
        self.directory = ROOT
        """Where its processes start: in a checkout, whose code they run then."""
        self._family = Family(self.home)
        self.process: subprocess.Popen[str] | None = None
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client()
        self.printed_url = ""
        """What the service has said that signs a browser in, once."""

    def __enter__(self) -> Self:
        """Start it; leave nothing behind at the end, whatever state it is in then."""
        try:
            self.start()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    @property
    def token(self) -> str:
        """The owner's."""
        return (self.data_dir / "token").read_text().strip()

    def start(self) -> None:
        """Return when the service has said that it is ready."""
        process = self.launch()
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if readable else ""
        self.printed_url = "".join(line.split()[-1:])
        assert self.printed_url.startswith(f"{self.url}/#code="), f"not ready: {line!r}\n{self.logs()}"
        self.connect()

    def launch(self, *role: str) -> subprocess.Popen[str]:
        """Start a process of the service, as a whole or in one ``role``."""
        command = [sys.executable, "-m", "service", *role, "--data-dir", str(self.data_dir), "--port", str(self.port)]
        with (self.folder / "stderr").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self.process

    def connect(self) -> None:
        """Sign in as the owner."""
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=90, trust_env=False)

    def login_url(self) -> str:
        """An address that signs a browser in, once."""
        answer = self.http.post("/api/v1/login-codes")
        assert answer.status_code == 201, answer.text
        return f"{self.url}{answer.json()['path']}"

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        """End it as a user or systemd does; its exit status."""
        assert self.process is not None
        self.note_processes()
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, seconds: float = 60.0) -> int:
        """The exit status of the service, once it and all that it ever started are gone."""
        assert self.process is not None
        status = self.process.wait(seconds)
        until = time.monotonic() + seconds
        while left := self.note_processes():
            assert time.monotonic() < until, f"the service left behind {[command_of(process) for process in left]}"
            time.sleep(0.1)
        self.http.close()
        return status

    def destroy(self) -> None:
        """Leave nothing behind, whatever state the service is in."""
        if self.process is not None and self.running():
            self.note_processes()
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        self._family.send(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        self.http.close()

    def note_processes(self) -> list[psutil.Process]:
        """Return the living processes of this service, and remember them."""
        return self._family.living()

    def find(self, *words: str) -> list[psutil.Process]:
        """Its living processes whose command line holds all of ``words``, the oldest first."""
        return self._family.find(*words)

    def logs(self) -> str:
        files = [self.folder / "stderr", *self.data_dir.glob("*.log")]
        return "\n".join(
            f"--- {file.name}\n{file.read_text(errors='replace')[-3000:]}" for file in files if file.exists()
        )

    # What tests ask of it.

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

        def look() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] in FINISHED else None

        return wait_for(f"the end of job {job_id}", look, JOB_SECONDS)

    def tuned(self, module: str | dict[str, str], **fields: Any) -> dict[str, Any]:
        """Submit a job and see it succeed, every task with a certified best."""
        job = self.finished(self.submit(module, **fields))
        assert job["state"] == "succeeded", job
        assert all(task["certified"] for task in job["tasks"]), job
        return job

    def in_the_middle(self, job_id: str, trials: int = 3) -> dict[str, Any]:
        """The job, once it has measured ``trials`` and while it is still running."""

        def look() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["progress"]["trials"] >= trials else None

        job = wait_for(f"{trials} trials of job {job_id}", look, JOB_SECONDS)
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
