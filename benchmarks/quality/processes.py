"""The engines' processes of one case, seen from the benchmark: start, ask for a sample, end."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.quality.engines import ENGINES, OURS
from benchmarks.quality.protocol import Answer, Choice, Sample
from benchmarks.quality.rest import wait_for_rest
from benchmarks.quality.settings import Settings
from benchmarks.quality.shared import Shared
from benchmarks.results import ROOT


class EngineProcess:
    """A running `benchmarks.quality.child`. Between two commands it is at rest."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    def answer(self) -> Answer:
        """Wait for the preparation, and return what became of it; if the process died, the engine has no variants."""
        try:
            answer = Answer.from_json(self._read())
        except RuntimeError as error:
            return Answer(failures={self.name: str(error)})
        wait_for_rest(self._process.pid)
        return answer

    def choose(self) -> Choice:
        """Let the engine time its variants, and return which it chose."""
        return Choice(**self._ask("choose"))

    def sample(self) -> Sample:
        """Return the seconds of a call."""
        return Sample(**self._ask("sample"))

    def _ask(self, command: str) -> dict[str, Any]:
        """Return the answer to a command, after the process has come to rest.

        Raises:
            RuntimeError: The process ended; the message is the end of what it printed.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        answer = self._read()
        wait_for_rest(self._process.pid)
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            last = (self._log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"the process ended with status {self._process.wait()}: {last}"[:300])
        return dict(json.loads(line))


@contextlib.contextmanager
def started(
    name: str, shared: Shared, settings: Settings, environment: dict[str, str], *, only: str | None = None
) -> Iterator[EngineProcess]:
    """Start the process of an engine, which prepares all of its variants, or ``only`` one. It ends with the block."""
    specification = {
        "engine": name,
        "shared": asdict(shared) | {"folder": str(shared.folder)},
        "threads": settings.threads,
        "variant": only,
    }
    python = sys.executable if ENGINES[name].is_ours else str(settings.rivals)
    # A user's process sets no thread counts: that is the task of Client.compile.
    threads = {} if name == OURS else settings.thread_environment
    path = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        log = Path(scratch) / "stderr"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [python, "-m", "benchmarks.quality.child", json.dumps(specification)],
                cwd=ROOT,
                env=os.environ | threads | environment | {"PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        with process:
            try:
                yield EngineProcess(name, process, log)
            finally:
                process.terminate()
