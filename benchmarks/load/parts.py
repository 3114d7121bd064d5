"""The processes of a load test beside the service: each prints a line when it is ready; some print what they found."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.code import ROOT

T = TypeVar("T")


class Part:
    """A running process, called ``name``. ``first``: the line that it printed when it was ready."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name = name
        self._process = process
        self.first = self._line()

    def end(self) -> Any:
        """Ask the process to end; returns what it found."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise SystemExit(f"{self._name} ended early; its message is above")
        return line


@contextlib.contextmanager
def running(module: str, *arguments: object) -> Iterator[Part]:
    """Start ``python -m module`` and wait until it is ready; at the end it is gone. A dataclass goes as a JSON file."""
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", module, *(stack.enter_context(_argument(value)) for value in arguments)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(process.kill)
        yield Part(module, process)


def run(module: str, plan: Any) -> Any:
    """Run ``python -m module`` to its end; returns what it found."""
    with _argument(plan) as path:
        command = [sys.executable, "-m", module, path]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def _argument(value: Any) -> Iterator[str]:
    if isinstance(value, str | int):
        yield str(value)
        return
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        path = Path(folder, "plan.json")
        path.write_text(json.dumps(asdict(value)))
        yield str(path)


def plan(kind: type[T]) -> T:
    """Return the plan that this process was started with."""
    return kind(**json.loads(Path(sys.argv[1]).read_text()))
