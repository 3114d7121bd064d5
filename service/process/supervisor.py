"""``scripts/serve``: database, API and controller as one service. A part that ends by itself is started again.

All state is in the database, so a crash costs only the time until the part runs again. The service exits when a part
exits too often, or with an error that only a person can mend.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from datetime import datetime
from http.client import HTTPException
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import IO
from urllib.request import ProxyHandler, Request, build_opener

import psutil
from prometheus_client.multiprocess import mark_process_dead

from loopwright import schemas
from loopwright.local.state import LOCK, LocalState
from loopwright.session.config import service_file
from service.process.exit_status import ExitStatus, status_of
from service.process.kept_log import KeptLog
from service.process.restarts import MOST, WITHIN_SECONDS, Restarts
from service.process.serve_error import ServeError
from service.settings import Settings, ensure_token
from workers.progress import Progress

log = logging.getLogger("loopwright.serve")

START_SECONDS = 180.0
"""For a start; on a busy machine it may take longer, while its processes get on."""
_LONGEST_START_SECONDS = 900.0
_LOCK_SECONDS = 30.0
"""How long to wait for an earlier service on the same data directory to finish ending."""
_PORT_SECONDS = 5.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.2
_SAYS = "loopwright: "

Say = Callable[[str], None]


class Supervisor:
    """Starts and stops the service's processes. ``say`` is told each step of a start.

    Each part has a name: its role, with a number if it is not the only one or the first.
    """

    def __init__(self, settings: Settings, say: Say = lambda text: None) -> None:
        self._settings = settings
        self._say = say
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, KeptLog] = {}
        self._restarts: dict[str, Restarts] = {}
        self._due: dict[str, float] = {}
        """Of parts that have ended, when they are started again."""
        self._stopping = False

    @property
    def url(self) -> str:
        """The URL of the service on this machine."""
        host = self._settings.host if self._settings.host not in ("0.0.0.0", "::", "") else "127.0.0.1"
        return f"http://{f'[{host}]' if ':' in host else host}:{self._settings.port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the service, ready, for the time of the block. Raise ServeError if it does not become ready."""
        self._settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _sole_owner(self._settings.data_dir) as lock:
            state = LocalState(os.getpid(), self.url)
            _note(lock, state)
            _require_free_port(self._settings)
            self._say(f"the database of {self._settings.data_dir} is opened ...")
            # A fork has SQLAlchemy and Alembic, 60 MB, only as long as it needs them.
            with ProcessPoolExecutor(1, get_context("fork")) as fork:
                self._settings, started_at = fork.submit(_prepared, self._settings).result()
            ensure_token(self._settings)
            try:
                self._say("the API, the controller and its workers start, on an idle machine within half a minute ...")
                self._start("controller")
                if (shared := self._settings.shared_metrics) is not None:
                    shutil.rmtree(shared, ignore_errors=True)
                for name in self._apis:
                    self._start(name)
                self._wait_until_ready(started_at)
                with _announced(self.url, self._settings.token_file):
                    _note(lock, replace(state, is_ready=True))
                    yield
            finally:
                self._stop()

    def login_url(self) -> str:
        """Return an address that signs one browser in as the owner, once. The service must be running."""
        return f"{self.url}{schemas.LoginCode.model_validate_json(self._answer('/api/v1/login-codes', 'POST')).path}"

    def wait(self) -> None:
        """Wait for a signal to stop, and restart parts that exit by themselves.

        Raise ServeError if a part exits too often, or with an error that a restart would not mend.
        """
        while not self._stopping:
            for role, status in self._ended():
                self._restart_later(role, status)
            self._start_due()
            time.sleep(_POLL_SECONDS)

    def handle_signals(self) -> None:
        """Stop the service cleanly on SIGTERM and SIGINT."""

        def stop(_: int, __: FrameType | None) -> None:
            if self._stopping:
                return
            self._stopping = True
            raise SystemExit(0)

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    @property
    def _apis(self) -> list[str]:
        return ["api", *(f"api-{number}" for number in range(2, self._settings.api_processes + 1))]

    def _start(self, name: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "service", name.partition("-")[0], "--die-with-parent"],
            env={**os.environ, **self._settings.environment()},
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for this process alone, which then ends them in order.
            start_new_session=True,
        )
        self._processes[name] = process
        assert process.stdout is not None
        self._logs[name] = KeptLog(process.stdout, self._settings.data_dir / f"{name}.log")

    def _wait_until_ready(self, started_at: datetime) -> None:
        """Until a worker was seen since the start: one that an earlier service left in the database may be gone."""
        began, progress = time.monotonic(), Progress(START_SECONDS, _LONGEST_START_SECONDS)
        while progress.goes_on():
            self._look_after_start()
            with contextlib.suppress(OSError, HTTPException):
                workers = schemas.Page[schemas.Worker].model_validate_json(self._answer("/api/v1/workers")).items
                if any(worker.last_seen_at >= started_at for worker in workers):
                    return
            time.sleep(_POLL_SECONDS)
        raise ServeError(
            f"the service was not ready within {time.monotonic() - began:.0f} s; see the logs in "
            f"{self._settings.data_dir}"
        )

    def _answer(self, path: str, method: str = "GET") -> bytes:
        """Return what the API answers the owner. Raises OSError and HTTPException.

        By the standard library: HTTPX has a fifth of a second of imports.
        """
        headers = {"Authorization": f"Bearer {ensure_token(self._settings)}"}
        without_proxies = build_opener(ProxyHandler({}))
        with without_proxies.open(Request(f"{self.url}{path}", None, headers, method=method), timeout=5) as answer:
            body: bytes = answer.read()
        return body

    def _look_after_start(self) -> None:
        """Start a part again that Ray kept from starting. Raises ServeError if a part has ended in another way."""
        for role, status in self._ended():
            if status_of(status) is not ExitStatus.RAY_LOST:
                raise self._failure(role, status, "")
            self._restart_later(role, status)
        self._start_due()

    def _start_due(self) -> None:
        now = time.monotonic()
        for role in [role for role, due in self._due.items() if due <= now]:
            del self._due[role]
            self._start(role)

    def _ended(self) -> Iterator[tuple[str, int]]:
        """Yield the parts that have ended, with their statuses."""
        for role, process in self._processes.items():
            if role not in self._due and (status := process.poll()) is not None:
                yield role, status

    def _restart_later(self, role: str, status: int) -> None:
        """Clear up after a part and plan its start. Raises ServeError."""
        process = self._processes[role]
        _kill_session(process.pid)
        if (shared := self._settings.shared_metrics) is not None and role in self._apis:
            mark_process_dead(process.pid, str(shared))  # type: ignore[no-untyped-call]
        self._logs[role].flush()
        if status_of(status).is_final:
            raise self._failure(role, status, "")
        restarts = self._restarts.setdefault(role, Restarts())
        pause = restarts.pause(time.monotonic())
        if pause is None:
            raise self._failure(
                role, status, f" once more, after {MOST} starts within {WITHIN_SECONDS / 60:.0f} minutes"
            )
        reason = _reason(self._logs[role].path)
        log.warning(
            "loopwright: the %s process ended (status %d%s); it is started again in %g s "
            "(start %d of at most %d within %.0f minutes)",
            role,
            status,
            f": {reason}" if reason and status_of(status) is not ExitStatus.FAILED else "",
            pause,
            restarts.count,
            MOST,
            WITHIN_SECONDS / 60,
        )
        self._due[role] = time.monotonic() + pause

    def _failure(self, role: str, status: int, how: str) -> ServeError:
        written = self._logs[role]
        written.flush()
        known = status_of(status)
        if known is not ExitStatus.FAILED and (reason := _reason(written.path)):
            return ServeError(reason, known)
        return ServeError(
            f"the {role} process ended{how} (status {status}), and so the service ends; nothing is lost, "
            f"start it again. The end of {written.path}:\n{_tail(written.path)}",
            known,
        )

    def _stop(self) -> None:
        """The API first, so that nothing new comes in; then the controller, which puts its jobs back."""
        self._stopping = True
        for names in (self._apis, ["controller"]):
            ended = {name: self._processes[name] for name in names if name in self._processes}
            for process in ended.values():
                process.terminate()
            for name, process in ended.items():
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                _kill_session(process.pid)
                self._logs[name].flush()


def _kill_session(leader: int) -> None:
    """Kill what a process that has ended left of its session: Ray's agents outlive a killed controller by a minute."""
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _sole_owner(data_dir: Path) -> Iterator[IO[str]]:
    """Hold the data directory, and yield its lock file: two services on one would take up each other's jobs."""
    with (data_dir / LOCK).open("a+") as file:
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise ServeError(
                        f"another service runs on {data_dir}; stop it, or give --data-dir and --port of its own"
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield file


def _note(lock: IO[str], state: LocalState) -> None:
    """Write who holds the data directory, for `loopwright.local.state`. It stays there when the process has gone."""
    lock.truncate(0)
    lock.write(json.dumps(asdict(state)))
    lock.flush()


@contextlib.contextmanager
def _announced(url: str, token_file: Path) -> Iterator[None]:
    """Let clients on this machine find the service (see `loopwright.session.config`)."""
    path = service_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    said = json.dumps({"url": url, "token_file": str(token_file)})
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(said)
    try:
        yield
    finally:
        # Another service may have announced itself since.
        with contextlib.suppress(FileNotFoundError):
            if path.read_text() == said:
                path.unlink()


def _require_free_port(settings: Settings) -> None:
    """Say now, not after half a minute in a log, that somebody else has the port."""
    until = time.monotonic() + _PORT_SECONDS
    while True:
        try:
            with socket.create_server((settings.host, settings.port), reuse_port=False):
                return
        except OSError as error:
            if time.monotonic() > until:
                raise ServeError(
                    f"cannot listen on {settings.host}:{settings.port} ({error.strerror}); choose another with --port"
                ) from error
            time.sleep(_POLL_SECONDS)


def _prepared(settings: Settings) -> tuple[Settings, datetime]:
    from service.process import preparation  # in the fork alone

    return preparation.prepare(settings)


def _reason(path: Path) -> str:
    """Return the last line of a log in which a process has said why it ended; empty without one."""
    said = [line for line in _tail(path).splitlines() if line.startswith(_SAYS)]
    return said[-1].removeprefix(_SAYS) if said else ""


def _tail(path: Path, lines: int = 20) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"
