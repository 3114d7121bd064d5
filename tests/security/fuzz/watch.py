"""Sends inputs to an API in a process of its own, and says what an honest user would complain about."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from db import Database
from tests.security.fuzz.inputs import Request
from tests.support import played_fleet
from tests.support.api_alone import ApiAlone
from tests.support.processes import is_warm_child
from tests.support.waiting import wait_for

USERS = 4
"""Each has one request under way: two are worked on, and two wait."""
ANSWER_SECONDS = 120.0
"""A request that has no answer by then hangs: the sandbox gives an input 30 s, and waits 10 s for a child."""
ADMIN_SECONDS = 20.0
"""Likewise, where no input is large enough to need a sandbox for long."""
_TRIES = 40
"""Of a request that the service is too busy for."""
_CHILDREN = 2
"""Warm children of an API, of which it starts the second when calls need it."""
_SCRIPT = {"module": {"format": "tvmscript", "data": "def"}}
"""Of a submission that a warm child reads, and that is refused."""
_BEAT_SECONDS = 10.0
_LIMITS = httpx.Limits(keepalive_expiry=2.0)
"""Less than the 5 s after which the API closes an idle connection, maybe just when it is used again."""
_TAKEN = (200, 201, 202)
_REFUSED = (400, 403, 404, 409, 413, 422)


@dataclass
class Found:
    """What was answered: requests by status, and what must not be."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return sum(self.statuses.values())


class Watched:
    """An API with a played worker and some users; see `watched`."""

    def __init__(self, api: ApiAlone) -> None:
        assert api.process is not None
        self.api = api
        self.process = psutil.Process(api.process.pid)
        self._users = [self._client("submit", ANSWER_SECONDS) for _ in range(USERS)]
        wait_for("the warm children of the API", self._has_all_children)
        self.at_rest = sorted(child.name() for child in self._below())
        self.admins = [self._client("admin", ADMIN_SECONDS) for _ in range(2)]
        """Clients of users who may do all."""

    def _has_all_children(self) -> bool:
        """Have two users ask for a child at once, and return whether all have started, and have no forks any more."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda user: user.post("/api/v1/jobs/preview", json=_SCRIPT), self._users[:2]))
        warm = [process for process in self._below() if is_warm_child(process)]
        with suppress(psutil.NoSuchProcess):  # a fork that has ended since
            return len(warm) == _CHILDREN and not any(process.children() for process in warm)
        return False

    def _below(self) -> list[psutil.Process]:
        return self.process.children(recursive=True)

    def _client(self, role: str, seconds: float) -> httpx.Client:
        """Return a client of a new user without limits, who waits so long for an answer."""
        name = f"user-{secrets.token_hex(4)}"
        user = {"name": name, "role": role, "quota": {}}
        assert self.api.http.post("/api/v1/users", json=user).status_code == 201
        made = self.api.http.post("/api/v1/tokens", json={"name": "fuzz", "user": name, "scope": role})
        headers = {"Authorization": f"Bearer {made.json()['secret']}", "Content-Type": "application/json"}
        return httpx.Client(base_url=self.api.url, headers=headers, timeout=seconds, trust_env=False, limits=_LIMITS)

    def close(self) -> None:
        for client in (*self._users, *self.admins):
            client.close()

    def send(self, requests: Iterable[tuple[str, Request]], clients: Sequence[httpx.Client] = ()) -> Found:
        """Send named requests, one of each client at a time, and read back what was taken; by default, as users."""
        found, pending, lock = Found(), iter(requests), threading.Lock()

        def work(client: httpx.Client) -> None:
            while True:
                with lock:
                    name, request = next(pending, ("", None))
                if request is None:
                    return
                for fault_status, fault in self._exchange(client, request):
                    with lock:
                        found.statuses[fault_status] += 1
                        if fault:
                            found.faults.append(f"{name}: {fault}\n{str(request)[:4000]}")

        with ThreadPoolExecutor() as pool:
            list(pool.map(work, clients or self._users))
        return found

    def _exchange(self, client: httpx.Client, request: Request) -> Iterator[tuple[int, str]]:
        """Yield the status of a request and of those that read what it made, and what is wrong with each answer."""
        answer = _answered(client, request)
        yield _judged(answer)
        if isinstance(answer, httpx.Response) and answer.status_code in _TAKEN:
            for reading in _readings(request, answer):
                yield _judged(_answered(client, reading), reading)

    def processes(self) -> set[int]:
        """Return the ids of the processes that live on: the API, and those below it while nothing is asked of it."""
        return {self.process.pid, *(child.pid for child in self._below())}

    def children(self) -> list[str]:
        """Return the programs that run below the API, once they are those that ran at first: no forks are left."""

        def look() -> list[str] | None:
            names = sorted(child.name() for child in self._below())
            return names if names == self.at_rest else None

        return wait_for("the API to have no more processes than at first", look, 60)


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """An API whose temporary files, home and data are in a folder, with a worker that never dies."""
    temporary = folder / "tmp"
    temporary.mkdir()
    api = ApiAlone(folder)
    api.environment |= {"TMPDIR": str(temporary), "LOOPWRIGHT_GUESTS": "true"}
    api.environment |= {"LOOPWRIGHT_LOG_FORMAT": "json", "LOOPWRIGHT_LOG_REQUESTS": "true"}
    with api:
        database = Database(api.database)
        stopped = threading.Event()

        def beat() -> None:
            while not stopped.wait(_BEAT_SECONDS):
                played_fleet.join(database)

        played_fleet.join(database)
        heart = threading.Thread(target=beat)
        heart.start()
        made = Watched(api)
        try:
            yield made
        finally:
            made.close()
            stopped.set()
            heart.join()
            database.close()


def _answered(client: httpx.Client, request: Request) -> httpx.Response | str:
    """Return the answer, after as many tries as the service asks for, or what went wrong instead."""
    for _ in range(_TRIES):
        try:
            answer = client.request(
                request.method, request.path, content=request.content, params=list(request.query) or None
            )
        except httpx.TimeoutException:
            return f"no answer within {client.timeout.read:g} s"
        except httpx.TransportError as error:
            return f"the connection broke: {error!r}"
        if answer.status_code not in (429, 503):
            return answer
        if not answer.headers.get("Retry-After", "").isdigit():
            return f"{answer.status_code} without a time to try again: {answer.text[:500]}"
        time.sleep(min(2, int(answer.headers["Retry-After"])))
    return f"too busy {_TRIES} times: {answer.text[:500]}"


def _judged(answer: httpx.Response | str, reading: Request | None = None) -> tuple[int, str]:
    where = "" if reading is None else f"{reading.path} of what it made: "
    if isinstance(answer, str):
        return 0, where + answer
    if answer.status_code not in (*_TAKEN, *_REFUSED):
        return answer.status_code, f"{where}{answer.status_code} {answer.text[:1000]}"
    problem = answer.headers.get("content-type") == "application/problem+json"
    if problem == (answer.status_code in _TAKEN):
        return answer.status_code, f"{where}{answer.status_code} with {answer.headers.get('content-type')}"
    if problem and any(word in answer.text for word in ("Traceback", "site-packages", "0x00007f")):
        return answer.status_code, f"{where}the answer tells of the service's inside: {answer.text[:2000]}"
    return answer.status_code, ""


def _readings(request: Request, answer: httpx.Response) -> Iterator[Request]:
    """Yield requests that render what was taken."""
    if request.path == "/api/v1/jobs":
        job = answer.json()
        yield Request("GET", f"/api/v1/jobs/{job['id']}/module", query=(("shapes", '{"n": 8}'),))
        for task in job["tasks"][:1]:
            yield Request("GET", f"/api/v1/workloads/{task['workload_hash']}")
            yield Request("GET", f"/api/v1/workloads/{task['workload_hash']}/roofline")
    elif request.path == "/api/v1/records/import" and answer.json()["imported"]:
        yield Request("GET", "/api/v1/records/export")


def records(client: httpx.Client, most: int) -> Iterator[tuple[str, Request]]:
    """Yield requests that render the newest records, as a program and as machine code."""
    found = client.get("/api/v1/records", params={"page_size": most}).json()["items"]
    for record in found:
        yield f"record {record['id']}", Request("GET", f"/api/v1/records/{record['id']}")
        yield f"assembly {record['id']}", Request("GET", f"/api/v1/records/{record['id']}/assembly")


def files(folder: Path) -> set[str]:
    """Return the files below a folder."""
    return {str(path) for path in folder.rglob("*") if not path.is_dir()}
