"""Check whether a service can run on this machine, without starting it. Prints JSON.

``loopwright doctor`` runs this check and shows the result with its own checks of the client.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

from db import revisions
from db.errors import AccessRefused, DatabaseDamaged, SchemaTooNew, Unavailable
from loopwright.codegen.machine.names import machine_name
from loopwright.doctor import Finding
from service.command import ROLE
from service.pages import DASHBOARD
from service.settings import Settings
from workers.child import child_calls
from workers.child.warm_child import ChildError
from workers.walls.levels import Level, NoWalls, choose, obstacles

_ROOM_BYTES = 2 * 2**30
"""Of disk: what a database of a million trials takes."""
_MEMORY_BYTES = 3 * 2**30
"""An idle service takes 0.8 GB; candidates are built and run in processes of their own."""
_ANSWER_SECONDS = 3.0


def main(settings: Settings) -> None:
    """``python -m service doctor``."""
    print(json.dumps([finding.model_dump(mode="json") for finding in findings(settings)], indent=2))


def findings(settings: Settings) -> Iterator[Finding]:
    yield _walls(settings)
    yield from _devices()
    yield _memory()
    yield _data_directory(settings)
    yield _database(settings)
    yield _ray(settings)
    yield _port(settings)
    if not (DASHBOARD / "index.html").exists():
        yield Finding.warning("dashboard", "not built", "run scripts/setup: without it the service has no pages")


def _walls(settings: Settings) -> Finding:
    subject = "sandbox of users' programs"
    try:
        level = choose(settings.walls)
    except NoWalls as error:
        return Finding.problem(subject, "none, and they are required", str(error))
    if level is Level.NAMESPACES:
        return Finding.ok(subject, str(level))
    reasons = "; ".join(f"{name}: {reason}" for name, reason in obstacles().items() if reason is not None)
    return Finding.warning(
        subject,
        f"{level}, by LOOPWRIGHT_SANDBOX={settings.walls} ({reasons or 'no stronger one is wanted'})",
        "docs/security.md says what each level keeps out, and what it needs",
    )


def _devices() -> Iterator[Finding]:
    try:
        devices = child_calls.detect_devices()
    except ChildError as error:
        yield Finding.problem(
            "devices", f"they could not be asked: {error}", "this machine can serve, but not measure, until that works"
        )
        return
    for device in devices:
        offer = device.device_class
        name, mcpu = machine_name(offer.model, offer.target_json), json.loads(offer.target_json).get("mcpu")
        found = ", ".join(filter(None, (device.processor, name, mcpu or "CUDA")))
        yield Finding.ok(f"device {device.name}", found)
    has_driver = Path("/dev/nvidiactl").exists()
    if has_driver and all(device.name == "cpu" for device in devices):
        yield Finding.warning(
            "device cuda",
            "there is an NVIDIA driver, but TVM finds no GPU",
            "check that nvidia-smi lists the GPU for this user, and that CUDA_VISIBLE_DEVICES does not hide it",
        )


def _memory() -> Finding:
    available = psutil.virtual_memory().available
    found = f"{available / 1e9:.1f} GB free"
    if available >= _MEMORY_BYTES:
        return Finding.ok("memory", found)
    return Finding.warning(
        "memory", found, "the service with one job takes up to 3 GB, and with less some of its processes may be killed"
    )


def _data_directory(settings: Settings) -> Finding:
    subject = "data directory"
    there = next(path for path in (settings.data_dir, *settings.data_dir.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Finding.problem(
            subject,
            f"{settings.data_dir} cannot be written",
            "give one that this user may write, with --data-dir or LOOPWRIGHT_DATA_DIR",
        )
    free = shutil.disk_usage(there).free
    found = f"{settings.data_dir}, {free / 1e9:.1f} GB free on its disk"
    if free >= _ROOM_BYTES:
        return Finding.ok(subject, found)
    return Finding.warning(
        subject, found, "make room: a million trials take 2 GB, and a full disk ends the service (nothing is lost)"
    )


def _database(settings: Settings) -> Finding:
    subject = "database"
    if settings.database_url is None and not (settings.data_dir / "loopwright.db").exists():
        return Finding.ok(subject, "SQLite, made at the first start")
    try:
        revisions.check(settings.database)
        revision, newest = revisions.current(settings.database), revisions.newest()
    except SchemaTooNew as error:
        return Finding.problem(subject, str(error), "run the version that made it, or restore a backup from before it")
    except DatabaseDamaged as error:
        return Finding.problem(subject, str(error), "restore a backup: docs/guides/recovery.md")
    except (AccessRefused, Unavailable) as error:
        return Finding.problem(subject, str(error), "start it, or correct LOOPWRIGHT_DATABASE_URL")
    kind = "SQLite" if settings.database.startswith("sqlite") else "PostgreSQL"
    if revision == newest:
        return Finding.ok(subject, f"{kind}, tables of revision {revision}")
    return Finding.warning(
        subject,
        f"{kind}, tables of revision {revision}, older than {newest}",
        f"a start of the service brings them up to date; '{ROLE} migrate' does it alone. Make a backup before",
    )


def _ray(settings: Settings) -> Finding:
    version = importlib.metadata.version("ray")
    if settings.ray_address is None:
        return Finding.ok("Ray", f"{version}, started by the service")
    host, _, port = settings.ray_address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        return Finding.problem(
            "Ray",
            f"nothing answers at {settings.ray_address}: {error}",
            "start Ray's head there, or correct LOOPWRIGHT_RAY_ADDRESS",
        )
    return Finding.ok("Ray", f"{version}; a head answers at {settings.ray_address}")


def _port(settings: Settings) -> Finding:
    subject = f"port {settings.port}"
    try:
        with socket.create_server((settings.host, settings.port), reuse_port=False):
            return Finding.ok(subject, f"free on {settings.host}")
    except OSError as error:
        if _is_loopwright(settings):
            return Finding.ok(subject, "Loopwright runs there")
        return Finding.problem(
            subject, f"cannot be listened on at {settings.host} ({error.strerror})", "choose another with --port"
        )


def _is_loopwright(settings: Settings) -> bool:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    try:
        answer = httpx.get(f"http://{host}:{settings.port}/version", timeout=_ANSWER_SECONDS)
        return "loopwright" in answer.json()
    except (httpx.HTTPError, ValueError):
        return False
