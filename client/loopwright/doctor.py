"""Lists the parts of an installation, the faults in it, and their cures. See the command ``loopwright doctor``."""

from __future__ import annotations

import enum
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.host import threads
from loopwright.codegen.versions import PINS, check_versions, installed
from loopwright.errors import LoopwrightError, Unauthorized
from loopwright.local import parts

if TYPE_CHECKING:
    from loopwright.client import Client

_SERVICE_SECONDS = 120.0
"""For the service's own findings: it asks the devices, which loads TVM twice."""
_MODEL_LIBRARIES = {"torch": "PyTorch", "onnx": "ONNX", "torchvision": "torchvision"}


class Health(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, but not as well as it could."""
    PROBLEM = "problem"
    """It does not work."""


class Finding(BaseModel):
    """One thing that was looked at. ``advice`` is what to do about it; None if there is nothing to do."""

    subject: str
    health: Health
    found: str
    advice: str | None = None

    @staticmethod
    def ok(subject: str, found: str) -> Finding:
        return Finding(subject=subject, health=Health.OK, found=found)

    @staticmethod
    def warning(subject: str, found: str, advice: str) -> Finding:
        return Finding(subject=subject, health=Health.WARNING, found=found, advice=advice)

    @staticmethod
    def problem(subject: str, found: str, advice: str) -> Finding:
        return Finding(subject=subject, health=Health.PROBLEM, found=found, advice=advice)


def of_this_python() -> Iterator[Finding]:
    """Yield what this Python has for tuned modules."""
    yield Finding.ok("Python", f"{platform.python_version()}, {platform.platform()}")
    yield _tvm()
    if linker := shutil.which("ld"):
        yield Finding.ok("linker", linker)
    else:
        yield Finding.warning(
            "linker",
            "none",
            "install binutils: without ld, libraries cannot be exported, and candidates are built more slowly",
        )
    yield _threads()
    for module, name in _MODEL_LIBRARIES.items():
        if importlib.util.find_spec(module) is not None:
            yield Finding.ok(name, importlib.metadata.version(module))


def of_the_service(client: Client) -> Iterator[Finding]:
    """Yield what the service says that the client is for."""
    subject = f"service at {client.url}"
    try:
        version = client.version()
        user = client.access.me()
        workers = list(client.workers())
    except Unauthorized as error:
        yield Finding.problem(
            subject,
            str(error),
            f"save a token of this service with: loopwright login {client.url}; unset LOOPWRIGHT_TOKEN and leave out "
            "--token, because both replace the saved token",
        )
        return
    except LoopwrightError as error:
        yield Finding.problem(
            subject, str(error), "start one with 'loopwright service start', or name it with --url or loopwright login"
        )
        return
    found = f"Loopwright {version.loopwright}, TVM {version.tvm}; you are {user.user}, who may {user.scope}"
    if version.tvm != PINS["apache-tvm"]:
        yield Finding.problem(
            subject, found, f"install the client of the service's release: this one needs TVM {PINS['apache-tvm']}"
        )
    else:
        yield Finding.ok(subject, found)
    alive = [worker for worker in workers if worker.alive]
    names = ", ".join(f"{worker.id} ({worker.device_model})" for worker in alive)
    if alive:
        yield Finding.ok("workers", names)
    else:
        yield Finding.problem(
            "workers", "none is alive", "jobs wait until one joins; the controller's log says why there is none"
        )


def of_the_checkout(options: list[str]) -> Iterator[Finding]:
    """Yield what is found of the parts that serve, if they are installed. ``options`` are those of the service."""
    service = parts.command("service")
    if service is None:
        return
    command = [*service, "doctor", *options]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_SERVICE_SECONDS, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        output = error.stderr if isinstance(error.stderr, str) else ""
        yield Finding.problem(
            "parts that serve",
            (output.strip().splitlines() or [str(error)])[-1],
            "see what it says; pip install 'loopwright[local]' or a checkout's scripts/setup installs what is missing",
        )
        return
    yield from (Finding.model_validate(fields) for fields in json.loads(ended.stdout))


def _tvm() -> Finding:
    pair = installed()
    if not any(pair.values()):
        return Finding.warning(
            "TVM",
            "none",
            "pip install 'loopwright[tvm]': without TVM, models can be submitted as text, but not compiled here",
        )
    try:
        check_versions()
    except UnsupportedVersion as error:
        return Finding.problem("TVM", _words(pair), str(error))
    return Finding.ok("TVM", _words(pair))


def _words(pair: dict[str, str | None]) -> str:
    return " and ".join(f"{name} {version or '(none)'}" for name, version in pair.items())


def _threads() -> Finding:
    if not hasattr(os, "sched_getaffinity"):
        return Finding.ok("threads", "left to TVM's runtime on this system")
    cores, configured = threads.usable_cores(), threads.configured()
    if configured in (None, cores):
        return Finding.ok("threads", f"{cores}, one for each core")
    name = threads.NUM_THREADS if threads.NUM_THREADS in os.environ else threads.OMP_NUM_THREADS
    return Finding.warning(
        "threads",
        f"{configured} by {name}, of {cores} cores",
        f"unset {name}: programs are certified with one thread for each core, and are slower with others",
    )
