"""Run the blocks of a document from the first to the last, as a reader does, and compare what they print.

=====================================  =================================================================
block                                  what becomes of it
=====================================  =================================================================
``python``                             runs, after the blocks before it
``python title="add.py"``              is written to this file, as is a block of any other language with a file name
``python title="Excerpt"``             is left alone
``sh``                                 each line runs; it has to end with status 0, or as ``# exit status 1`` says
``text title="Output"``                is what the block before it prints
``text title="Output, for example"``   is what it printed once: what is found decides it
``console``                            is for an operator; other tests parse its commands
=====================================  =================================================================
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loopwright.cli import main

_FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
    def is_excerpt(self) -> bool:
        return self.title.startswith("Excerpt")

    @property
    def runs(self) -> bool:
        return self.language in ("python", "sh") and not self.is_file and not self.is_excerpt

    @property
    def is_output(self) -> bool:
        return self.language == "text" and self.title == "Output"


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document in order."""
    text = document.read_text()
    return [
        Block(document, text.count("\n", 0, found.start()) + 1, found[1], found[2] or "", found[3])
        for found in _FENCE.finditer(text)
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

    def __init__(self, folder: Path, names: dict[str, Any] | None = None, *, trials: int) -> None:
        self.folder = folder
        self.names = {"__name__": "__main__", **(names or {})}
        self.trials = trials

    def read(self, document: Path, languages: Collection[str] = ("python", "sh")) -> None:
        """Run the blocks of a document in these languages.

        Raises:
            AssertionError: A command ends with another status than the document says, or something else is printed.
        """
        printed = ""
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
                    assert_prints(printed, block)
                elif block.runs and block.language in languages:
                    with contextlib.redirect_stdout(io.StringIO()) as out:
                        self._run(block, code)
                    printed = out.getvalue()
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
            expected = _STATUS.search(line)
            status, error = _loopwright(shlex.split(line, comments=True))
            assert status == (int(expected[1]) if expected else 0), f"{block}: {line}\n{error}"


def _loopwright(words: list[str]) -> tuple[int, str]:
    """Run ``loopwright …`` in this process; its status, and what it printed to standard error."""
    assert words[0] == "loopwright", words
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as error:
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), error.getvalue()
