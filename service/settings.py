"""Settings of the service: command-line options, or environment variables of the same name with LOOPWRIGHT_ before."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from db.engine.pool_size import CONNECTIONS
from loopwright.session.config import data_folder
from service.command import SERVE
from service.logs.lines import LogFormat
from workers.walls.levels import Policy

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LEAST_PLACES = 12
DEFAULT_DATA_DIR = data_folder()


class Settings(BaseSettings):
    """``token`` None: a file in the data directory, made at first start. ``ray_address`` None: a Ray of our own.

    ``sandbox``: of the processes that touch what users sent; None: see `walls`.
    ``allowed_hosts``: names and addresses that requests may ask for, with commas between; None: see `hosts`.
    ``unproven``: whether functions are measured that are not proven to stay inside of their buffers.
    ``guests``: whether users may hand out links that read and change nothing.
    ``audit_days``: how long the audit log keeps its entries.
    ``event_days``, ``trial_days``, ``job_days``: how long, after a job has ended, its events are kept, its trials that
    nothing needs, and a job on which no result stands; 0: for ever.
    ``rpc_devices``: the file of RPC devices (`workers.boards.config`); None: there are none.
    ``recheck_days``: after how many days a best is raced anew, in idle time; 0: never, whatever changes, and
    imported bests are not certified without a job of a user.
    ``max_jobs``: that a controller works on at a time; None: see `places`.
    ``api_processes``: that `scripts/serve` starts, behind one port.
    ``max_connections``: of each API process; half of them may be of one address.
    ``database_connections``: of each API process and of each controller, at most, beside one that listens for news.
    ``max_streams``, ``max_streams_per_user``: of events, at a time, in each API process.
    ``log_requests``: whether the API writes a line into its log for each request.
    """

    model_config = SettingsConfigDict(env_prefix="LOOPWRIGHT_", env_ignore_empty=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=1, le=65535)
    data_dir: Path = DEFAULT_DATA_DIR
    database_url: str | None = None
    ray_address: str | None = None
    token: str | None = None
    sandbox: Policy | None = None
    rpc_devices: Path | None = None
    guests: bool = False
    audit_days: int = Field(default=365, gt=0)
    event_days: float = Field(default=90, ge=0)
    trial_days: float = Field(default=365, ge=0)
    job_days: float = Field(default=730, ge=0)
    recheck_days: float = Field(default=30, ge=0)
    unproven: bool = False
    max_jobs: int | None = Field(default=None, ge=1)
    allowed_hosts: str | None = None
    max_body_bytes: int = Field(default=32 * 2**20, gt=0)
    api_processes: int = Field(default=1, ge=1, le=64)
    max_connections: int = Field(default=2000, gt=1)
    database_connections: int = Field(default=CONNECTIONS, gt=1)
    max_streams: int = Field(default=1000, gt=0)
    max_streams_per_user: int = Field(default=20, gt=0)
    log_format: LogFormat = LogFormat.TEXT
    log_requests: bool = False

    @property
    def walls(self) -> Policy:
        """``sandbox``, or else: required where others can reach the service, preferred where nobody can.

        A service with several users sets ``sandbox`` (`service.process.supervisor`).
        """
        if self.sandbox is not None:
            return self.sandbox
        return Policy.PREFER if self.host in _LOOPBACK else Policy.REQUIRE

    @property
    def hosts(self) -> frozenset[str] | None:
        """``allowed_hosts``, or else: those of loopback where the service listens there, None (any) elsewhere."""
        if self.allowed_hosts is not None:
            return frozenset(host.strip().strip("[]").lower() for host in self.allowed_hosts.split(","))
        return frozenset(_LOOPBACK) if self.host in _LOOPBACK else None

    @property
    def places(self) -> int:
        """``max_jobs``, or else: two for each core, and twelve at least. Most of a job's time it waits for others."""
        return self.max_jobs or max(_LEAST_PLACES, 2 * len(os.sched_getaffinity(0)))

    @property
    def database(self) -> str:
        """The database's URL; by default an SQLite file in the data directory."""
        return self.database_url or f"sqlite:///{self.data_dir / 'loopwright.db'}"

    @property
    def owner(self) -> str:
        """Who holds leases: the same name after a restart, so that a restart takes up its own jobs at once."""
        return f"{socket.gethostname()}:{self.data_dir}"

    @property
    def shared_metrics(self) -> Path | None:
        """The folder in which several API processes count their requests together; None for one process alone."""
        return self.data_dir / "api-metrics" if self.api_processes > 1 else None

    @property
    def token_file(self) -> Path:
        return self.data_dir / "token"

    def environment(self) -> dict[str, str]:
        """These settings for a child process that reads them anew."""
        values = self.model_dump(mode="json", exclude_none=True)
        return {f"LOOPWRIGHT_{name.upper()}": str(value) for name, value in values.items()}


class TraceSettings(BaseSettings):
    """OpenTelemetry's settings for where traces go. Its SDK reads these and others by itself."""

    model_config = SettingsConfigDict(env_prefix="OTEL_", env_ignore_empty=True)

    exporter_otlp_endpoint: str | None = None
    exporter_otlp_traces_endpoint: str | None = None
    service_name: str | None = None

    @property
    def endpoint(self) -> str | None:
        return self.exporter_otlp_traces_endpoint or self.exporter_otlp_endpoint


def parser(prog: str = SERVE) -> argparse.ArgumentParser:
    """Return the parser of the options that every command accepts which runs the service."""
    parser = argparse.ArgumentParser(prog=prog, description="Run the Loopwright service.")
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (default 8080)")
    parser.add_argument("--data-dir", type=Path, help=f"database, token and logs (default {DEFAULT_DATA_DIR})")
    parser.add_argument(
        "--database-url", help="sqlite:///FILE or postgresql://… (default: a file in the data directory)"
    )
    parser.add_argument("--ray-address", help="join this Ray cluster (default: start one on this machine)")
    parser.add_argument(
        "--sandbox",
        type=Policy,
        choices=list(Policy),
        help="sandbox of what users send (default: require if --host is not loopback, else prefer)",
    )
    parser.add_argument(
        "--api-processes",
        type=int,
        help="API processes behind the port; limits of connections and streams are of each (default 1)",
    )
    parser.add_argument("--rpc-devices", type=Path, help="file of RPC devices to measure on (default: none)")
    return parser


def read_settings(options: dict[str, Any]) -> Settings:
    """Return the settings from parsed options; those that were not given (None) come from the environment."""
    settings = Settings(**{name: value for name, value in options.items() if value is not None})
    paths = {"data_dir": settings.data_dir.expanduser().resolve()}
    if settings.rpc_devices is not None:
        paths["rpc_devices"] = settings.rpc_devices.expanduser().resolve()
    return settings.model_copy(update=paths)


def ensure_token(settings: Settings) -> str:
    """Return the owner's token; it is made at the first start and kept with mode 0600."""
    if settings.token:
        return settings.token
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = settings.token_file
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
    except FileExistsError:
        pass
    return path.read_text().strip()
