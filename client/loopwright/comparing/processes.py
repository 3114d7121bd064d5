"""The engines' processes, seen from who compares them: start, ask for a sample, end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from loopwright.codegen.host import lock as host_lock
from loopwright.comparing.protocol import Answer, EngineChoice, EngineResult, Sample
from loopwright.comparing.rest import wait_for_rest


class Sampled(Protocol):
    """What takes samples in rounds: the process of an engine, or another clock of the same model."""

    @property
    def name(self) -> str: ...

    def sample(self) -> Sample:
        """Return the seconds of a call. Raises RuntimeError: there will be none."""


class EngineProcess:
    """A running `loopwright.comparing.child`. Between two commands it is at rest."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    def answer(self) -> Answer:
        """Wait for the preparation, and return what became of it; if the process died, the engine has no variants."""
        try:
            answer = Answer.from_json(self.read())
        except RuntimeError as error:
            return Answer(failures={"": str(error)})
        wait_for_rest(self._process.pid)
        return answer

    def choose(self) -> EngineChoice:
        """Let the engine time its variants, and return which it chose."""
        return EngineChoice(**self.ask("choose"))

    def sample(self) -> Sample:
        """Return the seconds of a call."""
        return Sample(**self.ask("sample"))

    def ask(self, command: str) -> dict[str, Any]:
        """Return the answer to a command, after the process has come to rest.

        Raises:
            RuntimeError: The process ended; the message is the end of what it printed.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # what is read then says why
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()
        answer = self.read()
        wait_for_rest(self._process.pid)
        return answer

    def read(self) -> dict[str, Any]:
        """Return the next answer.

        Raises:
            RuntimeError: The process ended; the message is the end of what it printed.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            last = (self._log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"the process ended with status {self._process.wait()}: {last}"[:300])
        return dict(json.loads(line))


@contextlib.contextmanager
def started(
    name: str, command: Sequence[str], specification: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[EngineProcess]:
    """Start the process of an engine: ``command``, with the specification as its last argument. It ends with the block.

    ``environment`` is what it has beside this process's.
    """
    with tempfile.TemporaryDirectory(prefix="loopwright-compare-") as scratch:
        log = Path(scratch) / "stderr"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*command, json.dumps(specification)],
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            yield EngineProcess(name, process, log)
        finally:
            process.kill()
            process.communicate()


def rounds(ready: Sequence[Sampled], results: Mapping[str, EngineResult], count: int, *, seed: int) -> None:
    """Add ``count`` samples of each process to its engine's result, in an order that changes from round to round.

    Workers on this host neither build nor time meanwhile (`loopwright.codegen.host.lock`). An engine whose process ends
    is left out from then on: its result has a failure, and no choice.
    """
    order, alive = random.Random(seed), list(ready)
    for process in alive:
        results[process.name].samples.append([])
    for _ in range(count):
        with host_lock.quiet():
            for process in order.sample(alive, len(alive)):
                result = results[process.name]
                try:
                    taken = process.sample()
                except RuntimeError as error:
                    alive.remove(process)
                    result.answer.failures[""], result.choice = str(error), None
                    continue
                result.samples[-1].append(taken.seconds)
                result.peak_mb = taken.peak_mb
