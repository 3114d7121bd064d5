"""Run the blocks of a document from the first to the last, as a reader does, and compare what they print.

=====================================  =================================================================
block                                  what becomes of it
=====================================  =================================================================
``python``                             runs, after the blocks before it
``python title="add.py"``              is written to this file, as is a block of any other language with a file name
``python title="Excerpt"``             is left alone
``sh``                                 each line runs; it has to end with status 0, or as ``# exit status 1`` says
``sh title="Needs a GPU"``             is left alone
``text title="Output"``                is what the block before it prints
``text title="Output, for example"``   is what it printed once: what is found decides it
``console``                            sets up a machine; other tests parse its commands
=====================================  =================================================================
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loopwright.cli import main
from tests.support.service import ROOT

DOCS = ROOT / "docs"
TUTORIALS = [ROOT / "README.md", DOCS / "quick-start.md", *sorted((DOCS / "tutorials").glob("*.md"))]
GUIDES = [*sorted((DOCS / "guides").glob("*.md")), DOCS / "reference" / "client.md"]
FLEET = DOCS / "tutorials" / "fleet.md"
SETTINGS, OPERATIONS, REST = (DOCS / name for name in ("settings.md", "operations.md", "rest.md"))
RUN = [*TUTORIALS, *GUIDES, SETTINGS, OPERATIONS, REST]
"""The documents whose blocks are run, by the tests in ``tests/examples``."""

Replacements = Mapping[str, str | Callable[[], str]]
"""What takes the place of a word in commands, such as ``ID``; it is asked for where it is needed."""

FENCE = re.compile(r"^( *)```(\w*)(?: title=\"([^\"]*)\")?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"[\w./-]+\.\w+")
_TRIALS = re.compile(r"(max_trials\W{1,3}|--max-trials )(\d+)")
_STATUS = re.compile(r"# exit status (\d+)")
_DIGITS = r"\d+(?:\.\d+)?(?:e-?\d+)?"
_VARIES = {"id": r"\b[0-9a-f]{16}\b", "latency": rf"{_DIGITS} (?:ns|µs|ms)\b", "number": _DIGITS}
"""What differs between runs: where an output has one of these, another one may be printed."""
_VARYING = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _VARIES.items()))


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a document; ``line`` is that of its fence."""

    document: Path
    line: int
    language: str
    title: str
    code: str

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"

    @property
    def is_file(self) -> bool:
        return _FILE.fullmatch(self.title) is not None

    @property
    def is_marked(self) -> bool:
        """Whether it says that it is not whole, or needs what tests do not have."""
        return self.title.startswith("Needs a") if self.language == "sh" else self.title == "Excerpt"

    @property
    def runs(self) -> bool:
        return self.language in ("python", "sh") and not self.is_file and not self.is_marked

    @property
    def is_output(self) -> bool:
        return self.language == "text" and self.title == "Output"


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document in order."""
    text = document.read_text()
    return [
        Block(document, text.count("\n", 0, found.start()) + 1, found[2], found[3] or "", textwrap.dedent(found[4]))
        for found in FENCE.finditer(text)
    ]


def with_fewer_trials(code: str, trials: int) -> str:
    """Return code of a block with no budget over ``trials``: what is found is not what is tested."""
    return _TRIALS.sub(lambda budget: f"{budget[1]}{min(int(budget[2]), trials)}", code)


def assert_prints(printed: str, output: Block) -> None:
    """Compare what was printed with an output.

    An identifier, a latency or a number may stand for another one, and "…" for anything.
    """
    pattern, end, expected = "", 0, " ".join(output.code.split())
    for found in _VARYING.finditer(expected):
        pattern += re.escape(expected[end : found.start()]) + _VARIES[str(found.lastgroup)]
        end = found.end()
    pattern = re.sub(r"(?:\\ )?…", ".*", pattern + re.escape(expected[end:]))
    assert re.fullmatch(pattern, " ".join(printed.split())), f"{output} has\n{output.code}\nprinted was\n{printed}"


class Reader:
    """Runs the blocks of one document in a folder, its Python with the names that earlier blocks left."""

    def __init__(
        self,
        folder: Path,
        names: Mapping[str, Any] | None = None,
        *,
        trials: int,
        replacements: Replacements | None = None,
    ) -> None:
        self.folder = folder
        self.names = {"__name__": "__main__", **(names or {})}
        self.trials = trials
        self.replacements = replacements or {}
        self.printed = ""

    def read(self, document: Path) -> None:
        """Run the blocks of a document; ``printed`` is then what the last one printed.

        Raises:
            AssertionError: A command ends with another status than the document says, or something else is printed.
        """
        before = set(sys.modules)
        with contextlib.chdir(self.folder), pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(self.folder))
            for block in blocks(document):
                code = with_fewer_trials(block.code, self.trials)
                if block.is_file:
                    path = Path(block.title)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(code)
                elif block.is_output:
                    assert_prints(self.printed, block)
                elif block.runs:
                    with contextlib.redirect_stdout(io.StringIO()) as out:
                        self._run(block, code)
                    self.printed = out.getvalue()
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self.folder)):
                del sys.modules[name]

    def _run(self, block: Block, code: str) -> None:
        if block.language == "python":
            self._python(block, code)
        else:
            self._shell(block, code)

    def _python(self, block: Block, code: str) -> None:
        name = f"<{block}>"
        # Where TVM and PyTorch look for the source of what the block defines.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        exec(compile(code, name, "exec"), self.names)

    def _shell(self, block: Block, code: str) -> None:
        for line in code.replace("\\\n", " ").splitlines():
            command = self._replaced(line)
            expected = _STATUS.search(line)
            status, error = _loopwright(command) if command.startswith("loopwright ") else _program(command)
            assert status == (int(expected[1]) if expected else 0), f"{block}: {command}\n{error}"

    def _replaced(self, command: str) -> str:
        for word, value in self.replacements.items():
            if found := re.search(rf"(?<!\w){re.escape(word)}(?!\w)", command):
                text = value if isinstance(value, str) else value()
                command = command[: found.start()] + text + command[found.end() :]
        return command


def _loopwright(command: str) -> tuple[int, str]:
    """Run ``loopwright …`` in this process; its status, and what it printed to standard error.

    What it prints goes to the file after ``>``, if the command has one.
    """
    command, _, file = command.partition(" > ")
    with (
        pytest.MonkeyPatch.context() as patch,
        open(file or os.devnull, "w") as out,
        contextlib.redirect_stdout(out if file else sys.stdout),
        contextlib.redirect_stderr(io.StringIO()) as error,
    ):
        patch.setattr(sys, "argv", shlex.split(command, comments=True))
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), error.getvalue()


def _program(command: str) -> tuple[int, str]:
    """Run another command in a shell that finds Python where this process runs; the same of it."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    print(done.stdout, end="")
    return done.returncode, done.stderr
